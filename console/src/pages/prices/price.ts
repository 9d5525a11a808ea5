import type { ResponseOf } from '../../api/client';
import { exactUsd, nanoOf } from '../../figures/money';

export type Price = ResponseOf<'/admin/v1/prices', 'get'>['data'][number];
export type Missing = ResponseOf<'/admin/v1/prices/missing', 'get'>['data'][number];

/** USD without needless zeros: "$2.50". Null: free, or what input costs. */
export function amount(text: string | null): string | null {
  return text === null ? null : exactUsd(nanoOf(text));
}

/** Prices that have always applied begin in 1970. */
export function isFromStart(price: Pick<Price, 'effective_from'>): boolean {
  return new Date(price.effective_from).getTime() <= 0;
}

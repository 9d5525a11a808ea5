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

/** "Web searches" for `web_searches`. */
export function unitName(unit: string): string {
  const words = unit.replaceAll('_', ' ');
  return words[0]!.toUpperCase() + words.slice(1);
}

/** What the price of a unit is for. */
export function unitOf(unit: string): string {
  return unit.endsWith('_tokens') ? 'per million' : 'per thousand';
}

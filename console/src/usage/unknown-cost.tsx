import { Text } from '@mantine/core';
import { formatUsd, nanoOf } from '../figures/money';
import { counted } from '../figures/numbers';
import type { UsageSums } from './metrics';

/** What is not known of a sum of costs. */
export type UnknownSums = Pick<
  UsageSums,
  'unknown_calls' | 'unknown_low_usd' | 'unknown_high_usd' | 'unbounded_calls'
>;

const WHY =
  'The cost of these calls is not known: the provider may have billed what was not read, such as the rest of a stream that broke off. The sum leaves them out.';

/** What calls of unknown cost have cost: "$0.20 to $1.94", or "between $0.20 and $1.94"; null if there are none. */
export function moreOf(sums: UnknownSums, before = '', between = ' to '): string | null {
  const {
    unknown_calls: calls,
    unknown_low_usd: low,
    unknown_high_usd: high,
    unbounded_calls: unbounded,
  } = sums;
  if (calls === 0) return null;
  const least = formatUsd(nanoOf(low));
  return unbounded > 0 || high === null
    ? `at least ${least}`
    : `${before}${least}${between}${formatUsd(nanoOf(high))}`;
}

/** "31 calls of unknown cost: between $0.20 and $1.94 more"; null if there are none. */
export function unknownCost(sums: UnknownSums): string | null {
  const more = moreOf(sums, 'between ', ' and ');
  return more === null ? null : `${counted(sums.unknown_calls, 'call')} of unknown cost: ${more} more`;
}

/** What a sum of costs leaves out, below it: calls of unknown cost, and those without a price; nothing if there are none. */
export function UnknownCost({
  sums,
}: {
  sums: (UnknownSums & Pick<UsageSums, 'unpriced_calls'>) | null | undefined;
}) {
  if (!sums) return null;
  const unknown = unknownCost(sums);
  return (
    <Text size="xs" c="dimmed" component="div">
      {unknown !== null && <div title={WHY}>{unknown}</div>}
      {sums.unpriced_calls > 0 && <div>{counted(sums.unpriced_calls, 'call')} without a price</div>}
    </Text>
  );
}

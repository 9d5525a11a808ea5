import { Text } from '@mantine/core';
import { count } from '../../figures/numbers';
import { amount, type Price, unitName } from './price';

type Tier = NonNullable<Price['tiers']>[number];

const PRICES = [
  ['input', 'input', 'free'],
  ['cached_input', 'read from the cache', 'as input'],
  ['cache_write', 'written to the cache', 'as input'],
  ['cache_write_1h', 'written for an hour', 'as other writes'],
  ['output', 'output', 'free'],
] as const;

/** Which calls a tier is for: "more than 200,000 input tokens, service tier batch". */
function conditionOf({ above, between, service_tier: serviceTier, size, quality }: Tier): string {
  return [
    above === undefined ? [] : `more than ${count(above)} input tokens`,
    between === undefined ? [] : `from ${between[0]} to ${between[1]} UTC`,
    serviceTier === undefined ? [] : `service tier ${serviceTier}`,
    size === undefined ? [] : `size ${size}`,
    quality === undefined ? [] : `quality ${quality}`,
  ]
    .flat()
    .join(', ');
}

/** What they cost: "input $4, output $15". */
function pricesOf(tier: Tier): string {
  const { factor, cached_factor: cachedFactor, extra } = tier;
  return [
    factor === undefined ? [] : `tokens × ${factor}`,
    cachedFactor === undefined ? [] : `tokens read from the cache × ${cachedFactor}`,
    PRICES.flatMap(([name, label, absent]) => {
      const price = tier[name];
      if (price === undefined) return [];
      return `${label} ${amount(price) ?? absent}`;
    }),
    Object.entries(extra ?? {}).map(
      ([unit, price]) => `${unitName(unit).toLowerCase()} ${amount(price ?? null) ?? 'none'}`,
    ),
  ]
    .flat()
    .join(', ');
}

/** Other prices for some calls, a line each. */
export function Tiers({ tiers }: { tiers: readonly Tier[] }) {
  return (
    <>
      {tiers.map((tier, index) => (
        <Text key={index} size="sm" component="div">
          {conditionOf(tier)}: {pricesOf(tier)}
        </Text>
      ))}
    </>
  );
}

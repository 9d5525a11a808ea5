import type { Tier } from '../cost.js';
import { type ExtraPrices, isNewUnit } from './units.js';

/** The parts of a price that the table has twice: once as versions know them that lack the last two columns, once for the rest. */
export interface PriceParts {
  extra: ExtraPrices | null;
  tiers: Tier[] | null;
  /** Prices of the units that those versions would take for output tokens. */
  units: ExtraPrices | null;
  /** Tiers with such units, factors, sizes or qualities, whose conditions and amounts they would leave out. */
  unit_tiers: Tier[] | null;
}

/** Divides a price among the columns. Of the tiers, the order among those of one column stays. */
export function partsOf(extra: ExtraPrices | null, tiers: readonly Tier[] | null): PriceParts {
  const prices = Object.entries(extra ?? {});
  const [old, rest] = [false, true].map((isNew) => prices.filter(([unit]) => isNewUnit(unit) === isNew));
  const [oldTiers, restTiers] = [false, true].map((isNew) =>
    tiers?.filter((one) => isNewTier(one) === isNew),
  );
  return {
    extra: old!.length === 0 ? null : Object.fromEntries(old!),
    tiers: oldTiers?.length ? oldTiers : null,
    units: rest!.length === 0 ? null : Object.fromEntries(rest!),
    unit_tiers: restTiers?.length ? restTiers : null,
  };
}

/** The price that the columns hold. */
export function joinParts<T extends PriceParts>({ units, unit_tiers: more, ...price }: T) {
  const { extra, tiers } = price;
  return {
    ...price,
    extra: units === null ? extra : { ...extra, ...units },
    tiers: more === null ? tiers : [...(tiers ?? []), ...more],
  };
}

function isNewTier({ size, quality, factor, extra }: Tier): boolean {
  if ((size ?? quality ?? factor) !== undefined) return true;
  return Object.keys(extra ?? {}).some(isNewUnit);
}

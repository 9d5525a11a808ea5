import { formatDecimal, parseDecimal } from '../platform/decimal.js';

/** Decimal places of an amount in USD: it is counted in billionths of a dollar. */
const USD_SCALE = 9;

/** Billionths of a dollar of a decimal; null for text that is no decimal. */
export function nanoOf(usd: string): bigint | null {
  return parseDecimal(usd, USD_SCALE);
}

/** The same as a number, of what a row was charged: it has nine decimal places. */
export function nanoOfCharge(usd: string): number {
  const point = usd.length - USD_SCALE - 1;
  return usd[point] === '.' ? Number(usd.slice(0, point) + usd.slice(point + 1)) : Number(nanoOf(usd));
}

/** An amount in USD without superfluous zeros, with at least two decimal places: `500.00`, `0.0001425`. */
export function usdOf(nano: bigint): string {
  const sign = nano < 0n ? '-' : '';
  return sign + formatDecimal(nano < 0n ? -nano : nano, USD_SCALE).replace(/0{1,7}$/, '');
}

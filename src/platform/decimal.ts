/** Decimal text as JSON, Postgres and people write it: digits, a point, perhaps an exponent. */
const DECIMAL = /^(\d{1,60})(?:\.(\d{1,200}))?(?:[eE]([+-]?\d{1,2}))?$/;

/**
 * Reads a decimal without a sign as an integer number of 10^-scale. Digits beyond the scale are rounded half up, as
 * Postgres rounds a `numeric`. No step uses floating point.
 *
 * @returns null for text that is not such a decimal
 */
export function parseDecimal(text: string, scale: number): bigint | null {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  // The value is `digits` times 10^shift, in units of 10^-scale.
  const shift = scale + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfUp(digits, 10n ** BigInt(-shift));
}

/** The decimal of an integer number of 10^-scale, with exactly `scale` digits after the point. */
export function formatDecimal(units: bigint, scale: number): string {
  const digits = units.toString().padStart(scale + 1, '0');
  return `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** Both operands are positive or zero. */
export function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor / 2n) / divisor;
}

/** A JSON number that is not negative (RFC 8259 6). */
const NUMBER = /^(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,2}))?$/;

/**
 * Writes a JSON number without an exponent, with every digit and no more: `1.20e-05` is `0.000012`.
 *
 * @param places how far to move the point to the left
 * @returns null for a negative number, and for one that is no amount of money
 */
export function exactDecimal(number: string, places = 0): string | null {
  const [, whole, fraction = '', exponent = '0'] = NUMBER.exec(number) ?? [];
  if (whole === undefined) return null;
  const scale = fraction.length - Number(exponent) + places;
  return fromScaled(BigInt(whole + fraction), scale);
}

/** The sum of two results of exactDecimal(). */
export function addDecimals(a: string, b: string): string {
  const [one, other] = [a, b].map((decimal) => decimal.split('.')) as [string[], string[]];
  const scale = Math.max(one[1]?.length ?? 0, other[1]?.length ?? 0);
  const scaled = ([whole, fraction = '']: string[]) => BigInt(whole! + fraction.padEnd(scale, '0'));
  return fromScaled(scaled(one) + scaled(other), scale);
}

/** `digits` divided by 10 to the power of `scale`. */
function fromScaled(digits: bigint, scale: number): string {
  if (scale <= 0) return String(digits * 10n ** BigInt(-scale));
  const text = String(digits).padStart(scale + 1, '0');
  const fraction = text.slice(-scale).replace(/0+$/, '');
  const whole = text.slice(0, -scale);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

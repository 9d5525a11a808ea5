import type { Json } from './dialects.js';
import type { Span } from '../bytes.js';
import { openObject } from '../json-cursor.js';

/** xAI: a tick is 1e-10 USD. */
const TICK_PLACES = 10;

/**
 * The cost in USD that a usage object reports, digit for digit:
 *
 * - OpenRouter: `cost`; if the model was called with the customer's own key, it is OpenRouter's fee, and
 *   `cost_details.upstream_inference_cost` is the rest.
 * - Perplexity: `cost.total_cost`.
 * - xAI: `cost_in_usd_ticks`.
 *
 * @param span where the usage object is in the JSON
 * @param usage the usage object, parsed
 */
export function readReportedCost(json: Buffer, span: Span | null, usage: Json): string | null {
  // Most have none; their JSON is not read again.
  if (span === null) return null;
  if (usage.cost_in_usd_ticks !== undefined) return decimalAt(json, span, ['cost_in_usd_ticks'], TICK_PLACES);
  if (usage.cost === undefined) return null;
  if (typeof usage.cost === 'object') return decimalAt(json, span, ['cost', 'total_cost']);
  const cost = decimalAt(json, span, ['cost']);
  if (cost === null || usage.is_byok !== true) return cost;
  const upstream = decimalAt(json, span, ['cost_details', 'upstream_inference_cost']);
  // Without the other part, the cost is unknown.
  return upstream === null ? null : addDecimals(cost, upstream);
}

/** The number at a path of member names. */
function decimalAt(json: Buffer, span: Span, path: readonly string[], places = 0): string | null {
  const [name, ...rest] = path;
  const cursor = openObject(json, span[0]);
  let found: string | null = null;
  // Of a repeated name, JSON.parse takes the last one.
  while (cursor?.next()) {
    if (!cursor.isKey(name!)) continue;
    if (rest.length > 0) {
      const inner = cursor.objectSpan();
      found = inner && decimalAt(json, inner, rest, places);
    } else {
      const number = cursor.numberSpan();
      found = number && exactDecimal(json.toString('latin1', ...number), places);
    }
  }
  return found;
}

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

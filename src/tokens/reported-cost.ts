import type { Json } from './dialects.js';
import { addDecimals, exactDecimal } from './exact-decimal.js';
import { openObject, type Span } from './json-cursor.js';

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

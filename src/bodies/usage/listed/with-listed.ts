import type { CopiedBody } from '../plain-copy.js';
import type { ResponseUsage } from '../token-usage.js';
import { countsAll } from './listed-counter.js';
import type { ListedCounter } from './listed-counts.js';

/** The members stand before and after the images, whose text has no quotes. */
const SIZE = /"size"\s*:\s*"(\d{1,5}x\d{1,5})"/;
const QUALITY = /"quality"\s*:\s*"([a-z]{1,16})"/;
/** Bytes at both ends of a response that are searched for them. */
const SEARCHED = 4_096;

/**
 * The usage with what the response lists beside it: tools that were run, images, searches.
 *
 * @param counter has seen all of a response that is larger than its copy, else nothing
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function withListed(
  usage: ResponseUsage,
  kept: CopiedBody,
  counter: ListedCounter,
  endpoint: string,
): ResponseUsage {
  if (kept.whole) {
    if (!countsAll(endpoint)) return usage;
    counter.add(kept.head);
  }
  const counts = counter.end(usage.model);
  const hasTokens = (usage.promptTokens ?? usage.completionTokens) !== null;
  if (Object.keys(counts).length === 0 || (!hasTokens && counts.images === undefined)) return usage;
  const traits = counts.images === undefined ? {} : traitsOf(kept);
  return { ...usage, extra: { ...usage.extra, ...counts, ...traits } };
}

function traitsOf({ head, tail }: CopiedBody): { size?: string; quality?: string } {
  const end = tail.length > 0 ? tail : head;
  const text = head.toString('latin1', 0, SEARCHED) + end.toString('latin1', end.length - SEARCHED);
  const [size, quality] = [SIZE, QUALITY].map((pattern) => pattern.exec(text)?.[1]);
  return { ...(size !== undefined && { size }), ...(quality !== undefined && { quality }) };
}

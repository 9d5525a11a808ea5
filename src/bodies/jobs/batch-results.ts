import { isAtEnd, openObject } from '../json-cursor.js';
import { readJsonUsage } from '../usage/json-usage.js';
import { ResponseSums } from '../usage/response-sums.js';
import type { ResponseUsage } from '../usage/token-usage.js';

/** Where a line of results has the response: Anthropic; OpenAI, Azure and Mistral; Gemini. */
const PLACES = [['result', 'message'], ['response', 'body'], ['response']] as const;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);
/** A longer line is not read, and nor is its batch. */
const MAX_LINE = 16 * 1024 * 1024;
/** Bytes of the largest file of results that is read. */
const MAX_RESULTS = 2 * 1024 ** 3;

/** Results that are too large to be read. */
export class ResultsTooLargeError extends Error {
  override readonly name = 'ResultsTooLargeError';
}

/** What is no whole file of results: a page of an error, or the start of a file. */
export class ResultsIncompleteError extends Error {
  override readonly name = 'ResultsIncompleteError';
}

/** The service tier by which the requests of a batch are priced, whatever the response names. */
export function atBatchTier(usage: ResponseUsage): ResponseUsage {
  return { ...usage, extra: { ...usage.extra, service_tier: 'batch' } };
}

/**
 * Adds up the usage of a file of results, JSON lines, in constant memory.
 *
 * @param chunks of the file
 * @param leastLines how many results the provider has counted
 * @returns null if no line reports any
 * @throws ResultsTooLargeError, ResultsIncompleteError, and what the chunks throw
 */
export async function readResults(
  chunks: AsyncIterable<Buffer>,
  leastLines: number,
  maxBytes = MAX_RESULTS,
): Promise<ResponseUsage | null> {
  const sums = new ResponseSums();
  let bytes = 0;
  let lines = 0;
  let counted = 0;
  /** The start of a line that goes on in the next chunk, in parts: it is joined once. */
  let parts: Buffer[] = [];
  let waiting = 0;
  const take = (line: Buffer) => {
    if (isAtEnd(line, 0)) return;
    if (!isObject(line)) throw new ResultsIncompleteError();
    lines++;
    const usage = usageOfResult(line);
    if (usage === null) return;
    counted++;
    sums.add(atBatchTier(usage));
  };
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new ResultsTooLargeError();
    let from = 0;
    for (;;) {
      const to = chunk.indexOf(NEWLINE, from);
      if (to === -1) break;
      const rest = chunk.subarray(from, to);
      take(waiting > 0 ? Buffer.concat([...parts, rest]) : rest);
      parts = [];
      waiting = 0;
      from = to + 1;
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    waiting += chunk.length - from;
    if (waiting > MAX_LINE) throw new ResultsTooLargeError();
  }
  if (waiting > 0) take(Buffer.concat(parts));
  if (lines < leastLines) throw new ResultsIncompleteError();
  return counted === 0 ? null : sums.total;
}

/** Whether a line is one object, to its end. */
function isObject(line: Buffer): boolean {
  const cursor = openObject(line);
  while (cursor?.next());
  return cursor !== null && cursor.end !== -1 && isAtEnd(line, cursor.end);
}

/** The usage of one result; null if it has none, as one that failed. */
export function usageOfResult(line: Buffer): ResponseUsage | null {
  for (const place of PLACES) {
    const head = objectWithin(line, place);
    if (head === null) continue;
    const usage = readJsonUsage({ head, tail: NOTHING, whole: true }, '');
    if ((usage.promptTokens ?? usage.completionTokens) !== null) return usage;
  }
  return null;
}

/** The object at this place of an object; null if there is none. */
export function objectWithin(json: Buffer, place: readonly string[]): Buffer | null {
  let found = json;
  for (const name of place) {
    const cursor = openObject(found);
    if (cursor === null) return null;
    let span = null;
    while (span === null && cursor.next()) if (cursor.isKey(name)) span = cursor.objectSpan();
    if (span === null) return null;
    found = found.subarray(...span);
  }
  return found;
}

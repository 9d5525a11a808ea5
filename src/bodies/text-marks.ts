import { JSON_BYTES } from './bytes.js';

const { BACKSLASH, QUOTE, SPACE } = JSON_BYTES;

/**
 * A string is read by bytes this far, then with a native search, whose call costs as much as this many bytes. After an
 * escaped quote, by bytes again: where there is one, there often are more.
 */
export const SHORT_STRING = 24;

/** Index just past the blanks that begin here, such as an indentation. */
export function spacesEnd(chunk: Buffer, from: number): number {
  const { length } = chunk;
  let at = from;
  while (at < length && chunk[at] === SPACE) at++;
  return at;
}

/** Index of the next quote or backslash, at most `stop` unless `from` is past it. A function of its own is twice as fast. */
export function markEnd(chunk: Buffer, from: number, stop: number): number {
  let at = from;
  while (at < stop) {
    const byte = chunk[at]!;
    if (byte === QUOTE || byte === BACKSLASH) return at;
    at++;
  }
  return at;
}

/** Index of the quote that ends the string whose text begins at `from`; -1 when there is none. */
export function stringEnd(json: Buffer, from: number): number {
  const { length } = json;
  let at = from;
  let stop = Math.min(at + SHORT_STRING, length);
  for (;;) {
    at = markEnd(json, at, stop);
    if (at < stop) {
      if (json[at] === QUOTE) return at;
      at += 2;
      if (json[at - 1] === QUOTE) stop = Math.min(at + SHORT_STRING, length);
      continue;
    }
    const quote = at < length ? json.indexOf(QUOTE, at) : -1;
    if (quote === -1) return -1;
    stop = quote + 1;
    at = nearBackslash(json, at, quote, 1);
  }
}

/**
 * Where to read on by bytes so that each escape that may reach over `end` is read: a backslash with none in reach before
 * it.
 *
 * @param reach how far the last byte of an escape is from its backslash
 * @returns `end` if there is no such escape
 */
export function nearBackslash(chunk: Buffer, from: number, end: number, reach: number): number {
  let start = end;
  for (let at = end - 1; at >= from && start - at <= reach; at--) if (chunk[at] === BACKSLASH) start = at;
  return start;
}

import { JSON_BYTES, type Span } from '../bodies/bytes.js';
import { nextElement, openObject, parseText } from '../bodies/json-cursor.js';

const { OPEN_BRACKET } = JSON_BYTES;

/**
 * Cuts entries out of the response of `GET /v1/models`. All other bytes stay.
 *
 * @param isAllowed takes the name of an entry
 * @returns null if there is nothing to cut
 * @throws Error if it is not a list of models
 */
export function cutModels(body: Buffer, isAllowed: (model: string) => boolean): Buffer | null {
  // Validated first, because the cursor only skips.
  JSON.parse(body.toString());
  const parts: Buffer[] = [];
  let from = 0;
  let isAnyKept = false;
  const entries = entriesOf(body);
  entries.forEach(([start, end], i) => {
    const model = nameOf(body, start);
    if (model !== null && isAllowed(model)) {
      isAnyKept = true;
      return;
    }
    // With the comma before it or, until an entry is kept, the comma after it.
    const next = entries[i + 1];
    parts.push(body.subarray(from, isAnyKept ? entries[i - 1]![1] : start));
    from = isAnyKept || next === undefined ? end : next[0];
  });
  if (parts.length === 0) return null;
  parts.push(body.subarray(from));
  return Buffer.concat(parts);
}

/** The entries of a list: a bare array, or in `data` (OpenAI, Anthropic and most others) or `models` (Cohere). */
function entriesOf(body: Buffer): Span[] {
  const from = listStart(body);
  const entries: Span[] = [];
  for (let at = nextElement(body, from, true); at !== -1; at = nextElement(body, entries.at(-1)![1], false))
    entries.push([at, entryEnd(body, at)]);
  return entries;
}

function listStart(body: Buffer): number {
  const cursor = openObject(body);
  if (cursor === null && /^\s*\[/.test(body.toString('latin1', 0, 64))) return 0;
  while (cursor?.next()) {
    const isList = cursor.isKey('data') || cursor.isKey('models');
    if (isList && body[cursor.valueSpan()[0]] === OPEN_BRACKET) return cursor.valueSpan()[0];
  }
  throw new Error('it is not a list of models');
}

function entryEnd(body: Buffer, start: number): number {
  const entry = openObject(body, start);
  if (entry === null) throw new Error('it is not a list of models');
  while (entry.next());
  return entry.end;
}

/** The `id` of an entry, else its `name`; null if it has neither. */
function nameOf(body: Buffer, start: number): string | null {
  const entry = openObject(body, start);
  let name: string | null = null;
  while (entry?.next()) {
    if (entry.isKey('id')) return parseText(body, entry.textSpan());
    if (entry.isKey('name')) name = parseText(body, entry.textSpan());
  }
  return name;
}

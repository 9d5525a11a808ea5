import { isSpace, JSON_BYTES, MAX_VALUE, type Span } from './bytes.js';
import { stringEnd } from './text-marks.js';

const { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, NINE, OPEN_BRACE, OPEN_BRACKET, QUOTE, ZERO } = JSON_BYTES;

/** Members by one name that are tried from the end: each costs up to a walk over the rest. */
const MAX_TRIES = 4;

/**
 * Walks over the members of one JSON object (RFC 8259) without parsing its values: a value is only skipped, so that a
 * member is found at about 1 ns per byte of structure and less of text, and a value is only parsed when it is wanted.
 * Nothing is built, nested depth is a number, and nothing throws. What it skips it does not validate: brackets are
 * counted, not matched.
 */
export class ObjectCursor {
  private keyStart = 0;
  private keyEnd = 0;
  private valueStart = 0;
  private valueEnd = 0;
  /** Just past the closing brace; -1 while it was not met, and for good where the bytes end or stop being JSON. */
  end = -1;

  /**
   * @param at just past an opening brace; on a key's opening quote; or, with `afterValue`, just past a member
   */
  constructor(
    private readonly json: Buffer,
    private at: number,
    private afterValue = false,
  ) {}

  /** Moves to the next member. False at the closing brace, where the bytes end, and where they stop being JSON. */
  next(): boolean {
    const { json } = this;
    let at = skipSpace(json, this.at);
    this.at = json.length;
    if (json[at] === CLOSE_BRACE) this.end = at + 1;
    if (this.afterValue) {
      if (json[at] !== COMMA) return false;
      at = skipSpace(json, at + 1);
    }
    if (json[at] !== QUOTE) return false;
    this.keyStart = at + 1;
    this.keyEnd = stringEnd(json, at + 1);
    if (this.keyEnd === -1) return false;
    at = skipSpace(json, this.keyEnd + 1);
    if (json[at] !== COLON) return false;
    this.valueStart = skipSpace(json, at + 1);
    this.valueEnd = valueEnd(json, this.valueStart);
    if (this.valueEnd === -1) return false;
    this.at = this.valueEnd;
    this.afterValue = true;
    return true;
  }

  /**
   * Is this the member's name? A name is compared byte by byte and never decoded: one that is written with an escape is
   * another one. No provider and no client escapes these names, and decoding each of 40,000 keys held up the event loop.
   *
   * @param name ASCII
   */
  isKey(name: string): boolean {
    return isAscii(this.json, this.keyStart, this.keyEnd, name);
  }

  /** Bytes of the member's name. */
  get keyLength(): number {
    return this.keyEnd - this.keyStart;
  }

  /** True if the member's value is this string, written without an escape. */
  isText(text: string): boolean {
    const { json, valueStart, valueEnd } = this;
    return json[valueStart] === QUOTE && isAscii(json, valueStart + 1, valueEnd - 1, text);
  }

  /** Where the member's value is. */
  valueSpan(): Span {
    return [this.valueStart, this.valueEnd];
  }

  /** Where the member's value is, when it is an object; null when it is not. */
  objectSpan(): Span | null {
    return this.json[this.valueStart] === OPEN_BRACE ? [this.valueStart, this.valueEnd] : null;
  }

  /** Where the member's value is, when it is an array; null when it is not. */
  arraySpan(): Span | null {
    return this.json[this.valueStart] === OPEN_BRACKET ? [this.valueStart, this.valueEnd] : null;
  }

  /** Where the member's value is, when it is a string that is not empty; null when it is not. */
  textSpan(): Span | null {
    const { json, valueStart, valueEnd } = this;
    return json[valueStart] === QUOTE && valueEnd - valueStart > 2 ? [valueStart, valueEnd] : null;
  }

  /** Where the member's value is, when it is a number; null when it is not. */
  numberSpan(): Span | null {
    const { json, valueStart, valueEnd } = this;
    const first = json[valueStart]!;
    return first >= ZERO && first <= NINE ? [valueStart, valueEnd] : null;
  }

  /** A cursor on the member's own members when it is an object. */
  object(): ObjectCursor | null {
    return openObject(this.json, this.valueStart);
  }
}

/** A cursor on the members of the object that begins at the first byte that is no space; null where none does. */
export function openObject(json: Buffer, from = 0): ObjectCursor | null {
  const at = skipSpace(json, from);
  return json[at] === OPEN_BRACE ? new ObjectCursor(json, at + 1) : null;
}

/** Where the next element of an array begins, given where the last one ended; -1 at the array's end and where it breaks. */
export function nextElement(json: Buffer, from: number, first: boolean): number {
  let at = skipSpace(json, from);
  if (json[at] !== (first ? OPEN_BRACKET : COMMA)) return -1;
  at = skipSpace(json, at + 1);
  return at < json.length && json[at] !== CLOSE_BRACKET ? at : -1;
}

/** True if only white space follows. */
export function isAtEnd(json: Buffer, from: number): boolean {
  return skipSpace(json, from) === json.length;
}

/** True if only the end of an array follows. */
export function isArrayEnd(json: Buffer, from: number): boolean {
  const at = skipSpace(json, from);
  return json[at] === CLOSE_BRACKET && isAtEnd(json, at + 1);
}

/**
 * A cursor before the member `name` of an object of which only the end was seen. Text inside a string cannot pass for a
 * member, because there its quotes are escaped; nor can a member of a deeper object, because `isEnd` must agree with what
 * follows the closing brace.
 *
 * @param isEnd whether the object ends at this index, just past the brace
 * @returns null unless it is certain
 */
export function findTrailing(
  json: Buffer,
  name: string,
  isEnd: (json: Buffer, end: number) => boolean,
): ObjectCursor | null {
  const key = `"${name}"`;
  let at = json.length;
  for (let tries = 0; tries < MAX_TRIES && at > 0; tries++) {
    at = json.lastIndexOf(key, at - 1, 'latin1');
    if (at <= 0) return null;
    let before = at - 1;
    while (before > 0 && isSpace(json[before])) before--;
    if (json[before] !== COMMA && json[before] !== OPEN_BRACE) continue;
    const cursor = new ObjectCursor(json, at);
    while (cursor.next());
    if (cursor.end !== -1 && isEnd(json, cursor.end)) return new ObjectCursor(json, at);
  }
  return null;
}

/**
 * Parses one value; undefined when it is larger than 16 KiB or not JSON after all. A value that is not JSON takes some
 * 10 µs, so the readers parse only a fixed number of values, however many a document has.
 */
export function parseValue(json: Buffer, span: Span | null): unknown {
  if (span === null || span[1] - span[0] > MAX_VALUE) return undefined;
  try {
    return JSON.parse(json.toString('utf8', span[0], span[1]));
  } catch {
    return undefined;
  }
}

/** Parses a string; null when it is none, or empty. */
export function parseText(json: Buffer, span: Span | null): string | null {
  const value = parseValue(json, span);
  return typeof value === 'string' && value !== '' ? value : null;
}

function isAscii(json: Buffer, start: number, end: number, text: string): boolean {
  const { length } = text;
  if (end - start !== length) return false;
  for (let i = 0; i < length; i++) if (json[start + i] !== text.charCodeAt(i)) return false;
  return true;
}

function skipSpace(json: Buffer, from: number): number {
  let at = from;
  while (at < json.length && isSpace(json[at])) at++;
  return at;
}

/** Index just past the value that begins at `from`; -1 when it is cut off or is none. */
function valueEnd(json: Buffer, from: number): number {
  const { length } = json;
  const first = json[from];
  if (first === QUOTE) {
    const quote = stringEnd(json, from + 1);
    return quote === -1 ? -1 : quote + 1;
  }
  const nested = first === OPEN_BRACE || first === OPEN_BRACKET;
  let depth = 0;
  for (let at = from; at < length; at++) {
    const byte = json[at]!;
    if (nested) {
      if (byte === QUOTE) {
        at = stringEnd(json, at + 1);
        if (at === -1) return -1;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth++;
      } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) {
        return at + 1;
      }
    } else if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte)) {
      return at === from ? -1 : at;
    }
  }
  return -1;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Strings are read byte by byte this far, then with memchr, whose call costs as much as this many bytes. */
const SHORT_STRING = 48;

/** Members by one name that are tried from the end: each costs up to a walk over the rest. */
const MOST_TRIES = 4;

/** A larger value is neither a name nor token figures, and nested deep enough it would hold up the event loop. */
const LONGEST_VALUE = 16_384;

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

  /** @param name ASCII */
  isKey(name: string): boolean {
    const { json, keyStart, keyEnd } = this;
    const length = keyEnd - keyStart;
    // An escape takes six bytes at the most: a longer key is another one, and need not be decoded to know.
    if (length > 6 * name.length) return false;
    for (let i = 0; i < length; i++) {
      const byte = json[keyStart + i];
      if (byte === BACKSLASH) return parse(json, keyStart - 1, keyEnd + 1) === name;
      if (byte !== name.charCodeAt(i)) return false;
    }
    return length === name.length;
  }

  /** The member's value; undefined when it is larger than 16 KiB or not JSON after all. */
  value(): unknown {
    if (this.valueEnd - this.valueStart > LONGEST_VALUE) return undefined;
    return parse(this.json, this.valueStart, this.valueEnd);
  }

  /** The member's value when it is a string that says something. */
  text(): string | null {
    if (this.json[this.valueStart] !== QUOTE) return null;
    const value = this.value();
    return typeof value === 'string' && value !== '' ? value : null;
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

/** Is there nothing but space from here to the end? */
export function isAtEnd(json: Buffer, from: number): boolean {
  return skipSpace(json, from) === json.length;
}

/** Is there nothing but an array's end from here to the end? */
export function isArrayEnd(json: Buffer, from: number): boolean {
  const at = skipSpace(json, from);
  return json[at] === CLOSE_BRACKET && isAtEnd(json, at + 1);
}

/**
 * A cursor before the member `name` of an object of which only the end was seen. Text inside a string cannot pass for a
 * member, because there its quotes are escaped; nor can a member of a deeper object, because `isEnd` must agree with what
 * follows the closing brace.
 *
 * @param isEnd is this, the index just past the brace, where the object looked for ends?
 * @returns null unless it is certain
 */
export function findTrailing(
  json: Buffer,
  name: string,
  isEnd: (json: Buffer, end: number) => boolean,
): ObjectCursor | null {
  const key = `"${name}"`;
  let at = json.length;
  for (let tries = 0; tries < MOST_TRIES && at > 0; tries++) {
    at = json.lastIndexOf(key, at - 1, 'latin1');
    if (at <= 0) return null;
    let before = at - 1;
    while (before > 0 && isSpace(json[before]!)) before--;
    if (json[before] !== COMMA && json[before] !== OPEN_BRACE) continue;
    const cursor = new ObjectCursor(json, at);
    while (cursor.next());
    if (cursor.end !== -1 && isEnd(json, cursor.end)) return new ObjectCursor(json, at);
  }
  return null;
}

function parse(json: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(json.toString('utf8', start, end));
  } catch {
    return undefined;
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function skipSpace(json: Buffer, from: number): number {
  let at = from;
  while (at < json.length && isSpace(json[at]!)) at++;
  return at;
}

/** Index of the quote that ends the string whose text begins at `from`; -1 when there is none. */
function stringEnd(json: Buffer, from: number): number {
  const { length } = json;
  let at = from;
  while (at < length) {
    const stop = Math.min(at + SHORT_STRING, length);
    for (; at < stop; at++) {
      const byte = json[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at++;
    }
    if (at >= length) return -1;
    const quote = json.indexOf(QUOTE, at);
    if (quote === -1) return -1;
    let escapes = quote;
    while (escapes > at && json[escapes - 1] === BACKSLASH) escapes--;
    if ((quote - escapes) % 2 === 0) return quote;
    at = quote + 1;
  }
  return -1;
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

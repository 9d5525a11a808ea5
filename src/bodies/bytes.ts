/**
 * ASCII codes of JSON's grammar (RFC 8259). V8 takes a constant of the same module for one, and an imported or exported one
 * for a variable, which makes a walk over bytes a third slower: take them as `const { QUOTE } = JSON_BYTES;`.
 */
export const JSON_BYTES = {
  TAB: 0x09,
  NEWLINE: 0x0a,
  RETURN: 0x0d,
  SPACE: 0x20,
  QUOTE: 0x22,
  PLUS: 0x2b,
  COMMA: 0x2c,
  MINUS: 0x2d,
  DOT: 0x2e,
  ZERO: 0x30,
  NINE: 0x39,
  COLON: 0x3a,
  OPEN_BRACKET: 0x5b,
  BACKSLASH: 0x5c,
  CLOSE_BRACKET: 0x5d,
  LETTER_E: 0x65,
  LETTER_N: 0x6e,
  LETTER_U: 0x75,
  OPEN_BRACE: 0x7b,
  CLOSE_BRACE: 0x7d,
} as const;

const {
  TAB,
  NEWLINE,
  RETURN,
  SPACE,
  QUOTE,
  PLUS,
  MINUS,
  DOT,
  ZERO,
  NINE,
  BACKSLASH,
  LETTER_E,
  LETTER_N,
  LETTER_U,
} = JSON_BYTES;
/** The bit in which an ASCII letter differs from its capital. */
const CASE_BIT = 0x20;

/** Longest text of a value that is read: a longer one is neither a name nor a number, and may be slow to parse. */
export const MAX_VALUE = 16_384;

/** Where a value begins, and the index just past it. */
export type Span = readonly [start: number, end: number];

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

export function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | CASE_BIT;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

export function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === NEWLINE || byte === RETURN || byte === TAB;
}

/** Bytes of the escape that begins here (RFC 8259 7); 0 if it is none, or is not whole. */
export function escapeLength(json: Buffer, at: number): number {
  const next = json[at + 1];
  if (isShortEscape(next)) return 2;
  if (next !== LETTER_U) return 0;
  for (let i = at + 2; i < at + 6; i++) if (!isHexDigit(json[i])) return 0;
  return 6;
}

/** True if an escape of two characters ends with this byte. */
function isShortEscape(byte: number | undefined): boolean {
  switch (byte) {
    case LETTER_N:
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x72:
    case 0x74:
      return true;
    case undefined:
    default:
      return false;
  }
}

const WORDS: ReadonlyMap<number | undefined, string> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), word]),
);

/** Index just past the number, `true`, `false` or `null` that begins here; -1 if there is none. */
export function scalarEnd(json: Buffer, from: number): number {
  let at = json[from] === MINUS ? from + 1 : from;
  if (json[at] === ZERO) at++;
  else if (isDigit(json[at])) at = digitsEnd(json, at);
  else {
    const word = WORDS.get(json[from]);
    if (word === undefined) return -1;
    return json.toString('latin1', from, from + word.length) === word ? from + word.length : -1;
  }
  if (json[at] === DOT && (at = digitsEnd(json, at + 1)) === -1) return -1;
  if ((json[at]! | CASE_BIT) !== LETTER_E) return at;
  return digitsEnd(json, json[at + 1] === PLUS || json[at + 1] === MINUS ? at + 2 : at + 1);
}

/** Index just past one or more digits; -1 if there is none. */
function digitsEnd(json: Buffer, from: number): number {
  const { length } = json;
  let at = from;
  for (; at < length; at++) {
    const byte = json[at]!;
    if (byte < ZERO || byte > NINE) break;
  }
  return at === from ? -1 : at;
}

/** As scalarEnd(), for a number that begins with a digit other than 0. Nearly all are integers. */
export function integerEnd(json: Buffer, from: number): number {
  const end = digitsEnd(json, from);
  if (end === json.length) return end;
  const next = json[end]!;
  return next === DOT || (next | CASE_BIT) === LETTER_E ? scalarEnd(json, from) : end;
}

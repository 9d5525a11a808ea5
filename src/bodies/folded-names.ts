import { JSON_BYTES } from './bytes.js';

const { BACKSLASH } = JSON_BYTES;

/** An escape (RFC 8259 7) writes one character as six. */
export const ESCAPE_LENGTH = 6;

/**
 * The same text for names that some parser takes for the same: without regard to case, and by Unicode's simple folding, as
 * Go's parser compares them (U+017F is an s, U+212A a k).
 */
function fold(name: string): string {
  return name.toLowerCase().toUpperCase();
}

/** A name that was found. */
export interface FoundName {
  /** The one that was looked for. */
  readonly name: string;
  /** As it was sent, without its quotes and escapes. */
  readonly sent: string;
}

/** Names to look for; most other names are told apart by their length. */
export class NamesByLength {
  /** By their folded form. */
  private readonly names: ReadonlyMap<string, string>;
  private readonly lengths: ReadonlySet<number>;
  /** Bytes of the longest text, in its quotes, that can be one of the names. */
  readonly maxBytes: number;

  constructor(names: readonly string[]) {
    this.names = new Map(names.map((name) => [fold(name), name]));
    this.lengths = new Set(names.map(({ length }) => length));
    this.maxBytes = Math.max(...this.lengths) * ESCAPE_LENGTH + 2;
  }

  /** Which of these names some parser takes the text between these quotes for. @param end just past the closing quote */
  find(json: Buffer, start: number, end: number): FoundName | null {
    const length = end - start - 2;
    if (end - start > this.maxBytes) return null;
    let isPlain = true;
    for (let i = start + 1; i < end - 1; i++) if (json[i] === BACKSLASH || json[i]! > 0x7f) isPlain = false;
    if (isPlain && !this.lengths.has(length)) return null;
    const text = json.toString('utf8', start, end);
    const sent = isPlain ? text.slice(1, -1) : (JSON.parse(text) as string);
    const name = this.names.get(fold(sent));
    return name === undefined ? null : { name, sent };
  }
}

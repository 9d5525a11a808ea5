import { escapeLength, integerEnd, isSpace, JSON_BYTES, scalarEnd } from './bytes.js';
import { ESCAPE_LENGTH, type FoundName, type NamesByLength } from './folded-names.js';
import { type JsonValue, KeptValues, MAX_VALUES } from './kept-values.js';
import { BracketMarks } from './bracket-marks.js';
import { OutsideInput, TEXT_PLACES } from './outside-input.js';
import { markEnd, nearBackslash, SHORT_STRING, spacesEnd } from './text-marks.js';

const {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LETTER_N,
  NEWLINE,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
  ZERO,
} = JSON_BYTES;

/** Deeper JSON is rejected; the parsers of providers have limits of the same order. */
const MAX_DEPTH = 1_000;
/** A number with more characters is rejected. */
const MAX_SCALAR = 1_024;
/** The last byte of the longest escape comes so many bytes after its backslash. */
const REACH = ESCAPE_LENGTH - 1;
/** Past the end of every chunk: nothing more of it is read. */
const STOP = 0x3fffffff;

const OBJECT = 1;
const ARRAY = 0;

/** So many bytes without a quote or bracket are likely to be followed by more of them. */
const LONG_RUN = 32;
/** The bit in which square and curly brackets differ. */
const BRACKET_BIT = OPEN_BRACE ^ OPEN_BRACKET;

/**
 * TEXT: in a string that is no name of the outermost object. LONG_NAME: in one that is, longer than those looked for.
 * NESTED: in a value of the outermost object, of which only the end is looked for.
 */
const [VALUE, FIRST_NAME, NAME, AFTER_NAME, FIRST_ELEMENT, AFTER_VALUE, TEXT, LONG_NAME, NESTED, END] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
] as const;

/**
 * Walks once over a JSON request while it passes, in chunks of any size, and finds members of the outermost object: every
 * one that some parser could take for one of the names, in any case, because Go's parser ignores it, and written with
 * escapes. It keeps nothing but the values of these members, and nothing throws.
 *
 * Structure, numbers and names of the outermost object are validated (RFC 8259). Other text is skipped with a native search
 * for its quote. No known parser ends a string at a raw control character and goes on. An unknown escape matters only near
 * a quote: lenient readers skip the two bytes after `\x` and the four after `\u` unchecked, and so may skip a quote. They may
 * also skip a backslash and then read another escape than the next one, so backslashes are followed for as long as each is
 * in reach of the one before. A quote in their reach makes the body one that parsers read differently.
 *
 * Without a need to be certain, it takes valid JSON for granted and finds what most parsers read from it: of members with
 * exactly the same name the last one. Inside of a value it only counts brackets, and skips numbers with native searches.
 */
export class JsonWalk {
  /** Why parsers may read different members from the body; null if they cannot, or while nothing was found. */
  problem: string | null = null;

  /** Of the members that were found so far. */
  readonly values: KeptValues;
  /** Of the part that was read so far. */
  readonly outside = new OutsideInput();
  private state: number = VALUE;
  /** For each open bracket: OBJECT or ARRAY. */
  private readonly stack: number[] = [];
  private depth = 0;
  /** Bytes of the chunks before. */
  private passed = 0;
  /** The start of a token that the last chunk cut; it is read again with the next chunk. */
  private cut: Buffer | null = null;
  /** The string that is being read is a name. */
  private isName = false;
  /** Lenient readers may take the bytes up to this index of the body for a part of an escape. */
  private reach = -1;
  /** Of the present chunk. */
  private marks: BracketMarks | null = null;
  /** The outermost object's current member, if it is looked for. */
  private name: FoundName | null = null;
  /** The elements of its value so far, if they count. */
  private elements = 0;

  /**
   * @param names that are looked for
   * @param isCertain false if nothing depends on what other parsers may read
   */
  constructor(
    private readonly names: NamesByLength,
    private readonly isCertain: boolean,
  ) {
    this.values = new KeptValues(isCertain);
  }

  /** Reads the next chunk, which is not kept. */
  add(chunk: Buffer): void {
    if (this.problem !== null) return;
    const { cut } = this;
    this.cut = null;
    this.read(cut === null ? chunk : Buffer.concat([cut, chunk]));
  }

  /** The body has ended. */
  finish(): void {
    if (this.problem === null && this.state !== END) this.fail(0);
  }

  /** True once all of it was read. */
  get isWhole(): boolean {
    return this.problem === null && this.state === END;
  }

  /** The values of all members with this name, in any case. @param name one of those looked for */
  all(name: string): readonly JsonValue[] {
    return this.values.of(name);
  }

  /** Why what was found is not certain; null if it is. */
  get uncertainty(): string | null {
    if (this.problem !== null) return this.problem;
    return this.isCertain && this.state === END ? null : 'the body was not read as a whole';
  }

  private read(chunk: Buffer): void {
    const { length } = chunk;
    let at = 0;
    if (this.state === TEXT) at = this.readText(chunk, 0);
    else if (this.state === LONG_NAME) at = this.readName(chunk, -1, 0);
    while (at < length) {
      const byte = chunk[at]!;
      if (byte <= SPACE && isSpace(byte)) {
        at++;
        continue;
      }
      switch (this.state) {
        case AFTER_VALUE:
          at = this.readAfterValue(chunk, at, byte);
          break;
        case FIRST_ELEMENT:
          at = byte === CLOSE_BRACKET ? this.close(chunk, at, ARRAY) : this.readValue(chunk, at, byte);
          break;
        case VALUE:
          at = this.readValue(chunk, at, byte);
          break;
        case NESTED:
          at = this.skipNested(chunk, at);
          break;
        case AFTER_NAME:
          this.state = VALUE;
          at = byte === COLON ? at + 1 : this.fail(at);
          break;
        case FIRST_NAME:
        case NAME:
          if (byte === QUOTE)
            at = this.depth === 1 ? this.readName(chunk, at, at + 1) : this.startText(chunk, at, true);
          else if (byte === CLOSE_BRACE && this.state === FIRST_NAME) at = this.close(chunk, at, OBJECT);
          else at = this.fail(at);
          break;
        default:
          // Something follows the object.
          at = this.fail(at);
      }
    }
    this.marks = null;
    const used = length - (this.cut === null ? 0 : this.cut.length);
    this.values.keep(chunk, this.passed, used);
    this.passed += used;
  }

  private readAfterValue(chunk: Buffer, at: number, byte: number): number {
    if (byte === COMMA) {
      this.state = this.stack[this.depth] === OBJECT ? NAME : VALUE;
      if (this.depth === 2 && this.elements > 0) this.elements++;
      return at + 1;
    }
    if (byte === CLOSE_BRACE) return this.close(chunk, at, OBJECT);
    if (byte === CLOSE_BRACKET) return this.close(chunk, at, ARRAY);
    return this.fail(at);
  }

  private readValue(chunk: Buffer, at: number, byte: number): number {
    const { depth } = this;
    if (depth === 0 && byte !== OPEN_BRACE) {
      this.problem = 'the body is not a JSON object';
      return STOP;
    }
    if (depth === 2 && this.state === FIRST_ELEMENT && this.name !== null)
      this.elements = byte === QUOTE || byte === OPEN_BRACKET ? 1 : 0;
    if (byte === QUOTE) {
      if (depth === 1) this.startValue(chunk, at);
      return this.startText(chunk, at, false);
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (depth === MAX_DEPTH) {
        this.problem = `the body is nested deeper than ${MAX_DEPTH} levels`;
        return STOP;
      }
      if (depth === 1) this.startValue(chunk, at);
      this.stack[++this.depth] = byte === OPEN_BRACE ? OBJECT : ARRAY;
      if (!this.isCertain && depth === 1) return this.skipNested(chunk, at + 1);
      this.state = byte === OPEN_BRACE ? FIRST_NAME : FIRST_ELEMENT;
      return at + 1;
    }
    const end = byte > ZERO && byte <= NINE ? integerEnd(chunk, at) : scalarEnd(chunk, at);
    const isCut = end === -1 || end === chunk.length;
    if ((isCut ? chunk.length : end) - at > MAX_SCALAR) return this.fail(at);
    if (isCut) return this.cutAt(chunk, at);
    if (depth === 1) this.startValue(chunk, at);
    return this.endValue(chunk, end);
  }

  /** Skips the rest of a value of the outermost object. @param from where to read on, outside of strings */
  private skipNested(chunk: Buffer, from: number): number {
    const { length } = chunk;
    const places = TEXT_PLACES;
    let { depth } = this;
    let at = from;
    let sparse = at + LONG_RUN;
    this.state = NESTED;
    while (at < length) {
      const byte = chunk[at]!;
      if (byte === QUOTE) {
        const stop = Math.min(at + SHORT_STRING, length);
        const end = markEnd(chunk, at + 1, stop);
        if (end >= stop || chunk[end] === BACKSLASH) {
          this.depth = depth;
          return this.startText(chunk, at, false);
        }
        // The key of TEXT_PLACES: most texts are none of those that are looked for.
        if (
          places[
            ((chunk[at + 1]! & 0x1f) << 10) | ((chunk[at + 4]! & 0x1f) << 5) | (chunk[at + 5]! & 0x1f)
          ] !== 0
        )
          this.outside.text(chunk, at);
        at = end;
        sparse = at + LONG_RUN;
      } else if (byte >= OPEN_BRACKET) {
        const bracket = byte | BRACKET_BIT;
        if (bracket === OPEN_BRACE) depth++;
        else if (bracket === CLOSE_BRACE && --depth === 1) {
          this.depth = depth;
          return this.endValue(chunk, at + 1);
        }
      } else if (byte === NEWLINE) {
        at = spacesEnd(chunk, at + 1);
        sparse = at + LONG_RUN;
        continue;
      } else if (at >= sparse) {
        at = (this.marks ??= new BracketMarks(chunk)).next(at);
        sparse = at + LONG_RUN;
        continue;
      }
      at++;
    }
    this.depth = depth;
    return at;
  }

  private close(chunk: Buffer, at: number, kind: number): number {
    if (this.stack[this.depth] !== kind) return this.fail(at);
    if (--this.depth > 0) return this.endValue(chunk, at + 1);
    this.state = END;
    return at + 1;
  }

  private startValue(chunk: Buffer, at: number): void {
    if (this.name === null) return;
    this.outside.member(this.name.name, chunk[at]!);
    this.elements = 0;
    this.values.begin(this.passed + at);
  }

  /** @param end just past a value */
  private endValue(chunk: Buffer, end: number): number {
    this.state = this.isCertain || this.depth === 1 ? AFTER_VALUE : NESTED;
    if (this.depth !== 1 || this.name === null) return end;
    const isKept = this.values.end(chunk, this.passed, end, this.name, this.elements);
    this.name = null;
    this.elements = 0;
    if (isKept) return end;
    this.problem = `the body has more than ${MAX_VALUES} members that are looked for, such as "model"`;
    return STOP;
  }

  /**
   * Reads a name of the outermost object.
   *
   * @param start of its opening quote; -1 if that was in an earlier chunk
   * @param from where to read on
   */
  private readName(chunk: Buffer, start: number, from: number): number {
    const { length } = chunk;
    let at = from;
    while (at < length) {
      const byte = chunk[at]!;
      if (byte === QUOTE) {
        this.name = start === -1 ? null : this.find(chunk, start, at + 1);
        this.state = AFTER_NAME;
        return at + 1;
      }
      if (byte < SPACE) return this.fail(at);
      if (byte === BACKSLASH) {
        const bytes = escapeLength(chunk, at);
        if (bytes === 0) {
          if (length - at >= ESCAPE_LENGTH) return this.fail(at);
          break;
        }
        at += bytes;
      } else at++;
    }
    if (start !== -1 && length - start <= this.names.maxBytes) return this.cutAt(chunk, start);
    this.state = LONG_NAME;
    return at < length ? this.cutAt(chunk, at) : STOP;
  }

  private find(chunk: Buffer, start: number, end: number): FoundName | null {
    const found = this.names.find(chunk, start, end);
    return this.isCertain || found?.sent === found?.name ? found : null;
  }

  private startText(chunk: Buffer, at: number, isName: boolean): number {
    if (!this.outside.text(chunk, at)) return this.cutAt(chunk, at);
    this.isName = isName;
    this.state = TEXT;
    return this.readText(chunk, at + 1);
  }

  /** Reads a string to its closing quote. @param from just past its opening quote, or the start of a chunk */
  private readText(chunk: Buffer, from: number): number {
    const { length } = chunk;
    let at = from;
    let stop = Math.min(at + SHORT_STRING, length);
    for (;;) {
      for (;;) {
        at = markEnd(chunk, at, stop);
        if (at >= stop) break;
        if (chunk[at] === BACKSLASH) {
          const next = chunk[at + 1];
          const isCommon = next === LETTER_N || next === QUOTE || next === BACKSLASH;
          at = isCommon && this.passed + at > this.reach ? at + 2 : this.readEscape(chunk, at);
          if (next === QUOTE) stop = Math.min(at + SHORT_STRING, length);
          continue;
        }
        if (this.passed + at <= this.reach) return this.failAtQuote(at);
        if (!this.isName) return this.endValue(chunk, at + 1);
        this.state = AFTER_NAME;
        return at + 1;
      }
      if (at >= length) return at;
      const quote = chunk.indexOf(QUOTE, at);
      const end = quote === -1 ? length : quote;
      stop = quote === -1 ? length : quote + 1;
      at = nearBackslash(chunk, at, end, REACH);
    }
  }

  /** Reads the escape that begins here. @returns the index just past it */
  private readEscape(chunk: Buffer, at: number): number {
    const bytes = escapeLength(chunk, at);
    if (bytes === 0 && chunk.length - at < ESCAPE_LENGTH) return this.cutAt(chunk, at);
    const place = this.passed + at;
    // A lenient reader that skipped a backslash takes the next one for the start of an escape.
    if (bytes === 0 || place <= this.reach) this.reach = place + REACH;
    if (bytes !== 2) return at + (bytes || 2);
    const next = chunk[at + 1];
    if (next === QUOTE && place + 1 <= this.reach) return this.failAtQuote(at + 1);
    if (next === BACKSLASH && place + 1 <= this.reach) this.reach = place + 1 + REACH;
    return at + 2;
  }

  /** The chunk ends in a token: it is read again from here with the next chunk. */
  private cutAt(chunk: Buffer, at: number): number {
    this.cut = Buffer.from(chunk.subarray(at));
    return STOP;
  }

  private fail(at: number): number {
    this.problem = `the body is not valid JSON, at byte ${this.passed + at}`;
    return STOP;
  }

  private failAtQuote(at: number): number {
    this.problem = `the body is not valid JSON: an unknown escape before the quote at byte ${this.passed + at}`;
    return STOP;
  }
}

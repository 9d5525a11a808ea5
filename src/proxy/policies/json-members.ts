import { isUtf8 } from 'node:buffer';
import { elementCount } from '../../tokens/json-cursor.js';
import { ESCAPE_LENGTH, type NamesByLength } from '../../bodies/folded-names.js';

/** Where a value starts, and the index just past it. */
export type ValueSpan = readonly [start: number, end: number];

/** Deeper JSON is rejected; the parsers of providers have limits of the same order. */
const MOST_DEPTH = 1_000;
const NONE: readonly ValueSpan[] = [];
/** Longest text of a value that is parsed. */
const LONGEST_VALUE = 16_384;

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** The bit in which an ASCII letter differs from its capital. */
const CASE_BIT = 0x20;

type State = 'value' | 'first key' | 'key' | 'colon' | 'first element' | 'after value' | 'string' | 'end';

/**
 * Finds members of the outermost object of a JSON text, every one of them that some parser could take for the member: in any
 * case, because Go's parser ignores it, and written with escapes. Unlike ObjectCursor in `tokens/`, which looks for counts
 * in responses, it validates the whole text (RFC 8259), so that no parser, strict or lenient, can read other members. It
 * works in steps, so that a large body does not block the event loop; it builds nothing.
 */
export class JsonMembers {
  /** Why the text is not a JSON object in UTF-8; null if it is, or while none was found. */
  problem: string | null;
  private readonly found = new Map<string, ValueSpan[]>();
  private at = 0;
  private state: State = 'value';
  /** For each open bracket: 1 for an object. */
  private readonly stack: number[] = [];
  private depth = 0;
  /** The string that is being read is a name. */
  private isName = false;
  private nameStart = 0;
  /** Name of the outermost object's current member, if it was asked for. */
  private name: string | null = null;
  private valueStart = 0;

  /** @param names that are looked for */
  constructor(
    private readonly json: Buffer,
    private readonly names: NamesByLength,
  ) {
    this.problem = isUtf8(json) ? null : 'the body is not UTF-8';
  }

  /** Reads about this many bytes. @returns true once all was read, or a problem was found */
  advance(bytes: number): boolean {
    const { json } = this;
    const until = Math.min(this.at + bytes, json.length);
    while (this.problem === null && this.at < until) {
      if (this.state === 'string') {
        this.readString(until);
        continue;
      }
      const byte = json[this.at]!;
      if (byte === SPACE || byte === NEWLINE || byte === RETURN || byte === TAB) this.at++;
      else this.read(byte);
    }
    if (this.problem === null && this.at >= json.length && this.state !== 'end') this.fail();
    return this.problem !== null || this.at >= json.length;
  }

  /** Values of the members with this name, in any case. @param name one of those looked for */
  all(name: string): readonly ValueSpan[] {
    return this.found.get(name) ?? NONE;
  }

  /** Parses a value; undefined if it is longer than 16 KiB. */
  parse([start, end]: ValueSpan): unknown {
    if (end - start > LONGEST_VALUE) return undefined;
    return JSON.parse(this.json.toString('utf8', start, end));
  }

  /** The number of strings or arrays in an array; 0 for any other value. */
  elements([start]: ValueSpan): number {
    return elementCount(this.json, start);
  }

  private read(byte: number): void {
    switch (this.state) {
      case 'first element':
        if (byte === CLOSE_BRACKET) this.close(0);
        else this.readValue(byte);
        return;
      case 'value':
        this.readValue(byte);
        return;
      case 'first key':
        if (byte === CLOSE_BRACE) this.close(1);
        else this.readName(byte);
        return;
      case 'key':
        this.readName(byte);
        return;
      case 'colon':
        if (byte === COLON) this.step('value');
        else this.fail();
        return;
      case 'after value':
        if (byte === COMMA) this.step(this.stack[this.depth] === 1 ? 'key' : 'value');
        else if (byte === CLOSE_BRACE) this.close(1);
        else if (byte === CLOSE_BRACKET) this.close(0);
        else this.fail();
        return;
      case 'string':
      case 'end':
        // Something follows the object.
        this.fail();
    }
  }

  private step(state: State): void {
    this.at++;
    this.state = state;
  }

  private readName(byte: number): void {
    if (byte !== QUOTE) {
      this.fail();
      return;
    }
    this.isName = true;
    this.nameStart = this.at;
    this.step('string');
  }

  private readValue(byte: number): void {
    if (this.depth === 0 && byte !== OPEN_BRACE) this.problem = 'the body is not a JSON object';
    if (this.depth === 1) this.valueStart = this.at;
    if (byte === OPEN_BRACE) this.open(1, 'first key');
    else if (byte === OPEN_BRACKET) this.open(0, 'first element');
    else if (byte === QUOTE) {
      this.isName = false;
      this.step('string');
    } else {
      const end = scalarEnd(this.json, this.at);
      if (end === -1) this.fail();
      else {
        this.at = end;
        this.endValue();
      }
    }
  }

  private open(kind: number, state: State): void {
    if (this.depth === MOST_DEPTH) {
      this.problem = `the body is nested deeper than ${MOST_DEPTH} levels`;
      return;
    }
    this.stack[++this.depth] = kind;
    this.step(state);
  }

  private close(kind: number): void {
    if (this.stack[this.depth] !== kind) {
      this.fail();
      return;
    }
    this.at++;
    if (--this.depth === 0) this.state = 'end';
    else this.endValue();
  }

  private endValue(): void {
    this.state = 'after value';
    if (this.depth !== 1 || this.name === null) return;
    const spans = this.found.get(this.name);
    if (spans === undefined) this.found.set(this.name, [[this.valueStart, this.at]]);
    else spans.push([this.valueStart, this.at]);
  }

  /** Reads the rest of a string, up to its closing quote or `until`. */
  private readString(until: number): void {
    const { json } = this;
    let { at } = this;
    for (; at < until; at++) {
      const byte = json[at]!;
      if (byte === QUOTE) {
        this.at = at + 1;
        this.endString();
        return;
      }
      if (byte < SPACE) break;
      if (byte === BACKSLASH) {
        const length = escapeLength(json, at);
        if (length === 0) break;
        at += length - 1;
      }
    }
    this.at = at;
    if (at < until) this.fail();
  }

  private endString(): void {
    if (!this.isName) {
      this.endValue();
      return;
    }
    this.state = 'colon';
    if (this.depth === 1) this.name = this.names.find(this.json, this.nameStart, this.at);
  }

  private fail(): void {
    this.problem = `the body is not valid JSON, at byte ${this.at}`;
  }
}

/** Bytes of the escape that begins here; 0 if it is none. */
function escapeLength(json: Buffer, at: number): number {
  const byte = json[at + 1];
  if (byte === undefined) return 0;
  if (byte !== LETTER_U) return '"\\/bfnrt'.includes(String.fromCharCode(byte)) ? 2 : 0;
  for (let i = at + 2; i < at + ESCAPE_LENGTH; i++) {
    const digit = json[i];
    if (digit === undefined || !isHexDigit(digit)) return 0;
  }
  return ESCAPE_LENGTH;
}

function isHexDigit(byte: number): boolean {
  const letter = byte | CASE_BIT;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** Index just past the number, `true`, `false` or `null` that begins here; -1 if there is none. */
function scalarEnd(json: Buffer, from: number): number {
  for (const word of ['true', 'false', 'null']) {
    if (json[from] === word.charCodeAt(0))
      return json.toString('latin1', from, from + word.length) === word ? from + word.length : -1;
  }
  let at = json[from] === MINUS ? from + 1 : from;
  if (json[at] === ZERO) at++;
  else if ((at = digitsEnd(json, at)) === -1) return -1;
  if (json[at] === DOT && (at = digitsEnd(json, at + 1)) === -1) return -1;
  if ((json[at]! | CASE_BIT) !== LETTER_E) return at;
  return digitsEnd(json, json[at + 1] === PLUS || json[at + 1] === MINUS ? at + 2 : at + 1);
}

/** Index just past one or more digits; -1 if there is none. */
function digitsEnd(json: Buffer, from: number): number {
  let at = from;
  while (isDigit(json[at])) at++;
  return at === from ? -1 : at;
}

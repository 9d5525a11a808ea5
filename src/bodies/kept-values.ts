import { MAX_VALUE } from './bytes.js';
import type { FoundName } from './folded-names.js';

/** The value of a member of the outermost object. */
export interface JsonValue {
  /** The member's name as it was sent, without its quotes and escapes. */
  readonly name: string;
  /** Where the value begins in the body. */
  readonly start: number;
  /** The index just past it. */
  readonly end: number;
  /** As it was sent; null if it is longer than 16 KiB. */
  readonly text: string | null;
  /** The number of elements of an array that begins with a string or another array; 0 for any other value. */
  readonly elements: number;
}

/** More members than this are not kept: no request names so many of them. */
export const MAX_VALUES = 32;

const NONE: readonly JsonValue[] = [];

/** The values of the members that a walk looks for, put together from the chunks in which they come. */
export class KeptValues {
  private readonly byName = new Map<string, JsonValue[]>();
  private count = 0;
  /** Where the present value begins in the body; -1 outside of one. */
  private start = -1;
  /** The part of it that was in earlier chunks. */
  private parts: Buffer[] = [];

  /** @param ofAll false: of the members with one name only the last one is kept */
  constructor(private readonly ofAll: boolean) {}

  /** By the names that are looked for, in the order of the body. */
  get all(): ReadonlyMap<string, readonly JsonValue[]> {
    return this.byName;
  }

  /** @param name one of those looked for */
  of(name: string): readonly JsonValue[] {
    return this.byName.get(name) ?? NONE;
  }

  /** Lets go of the values so far. */
  forget(): void {
    this.byName.clear();
  }

  /** @param start where a value begins in the body */
  begin(start: number): void {
    this.start = start;
  }

  /**
   * A chunk ends; keeps what it has of a value.
   *
   * @param passed bytes before the chunk
   * @param to where the part of the chunk ends that was read
   */
  keep(chunk: Buffer, passed: number, to: number): void {
    const { start, parts } = this;
    if (start === -1) return;
    if (passed + to - start > MAX_VALUE) this.parts = [];
    else parts.push(Buffer.from(chunk.subarray(Math.max(start - passed, 0), to)));
  }

  /** The value ends. @param at where, in the chunk @returns false if there are too many values: this one is not kept */
  end(chunk: Buffer, passed: number, at: number, { name, sent }: FoundName, elements: number): boolean {
    if (this.ofAll && ++this.count > MAX_VALUES) return false;
    const { start, parts } = this;
    const end = passed + at;
    let text: string | null = null;
    if (end - start <= MAX_VALUE) {
      const from = Math.max(start - passed, 0);
      text =
        parts.length === 0
          ? chunk.toString('utf8', from, at)
          : Buffer.concat([...parts, chunk.subarray(from, at)]).toString();
    }
    const value = { name: sent, start, end, text, elements };
    const values = this.byName.get(name);
    if (values === undefined || !this.ofAll) this.byName.set(name, [value]);
    else values.push(value);
    this.start = -1;
    this.parts = [];
    return true;
  }
}

/** Parses a value as JSON.parse does; undefined if it is longer than 16 KiB, or is none after all. */
export function parseValue({ text }: JsonValue): unknown {
  if (text === null) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

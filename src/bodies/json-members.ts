import { isUtf8 } from 'node:buffer';
import type { JsonWalk } from './json-walk.js';

/** A member of the outermost object. */
export interface JsonMember {
  /** Where its value begins in the body. */
  readonly start: number;
  /** The index just past its value. */
  readonly end: number;
  /** As JSON.parse reads it; undefined if it is longer than 16 KiB. */
  readonly value: unknown;
  /** The number of elements of an array that begins with a string or another array; 0 for any other value. */
  readonly elements: number;
}

const NONE: readonly JsonMember[] = [];

/** The members that a walk found in a whole JSON body, if no parser, strict or lenient, can read other ones. */
export class JsonMembers {
  /** Why they are not certain; null if they are. */
  readonly problem: string | null;
  private readonly found = new Map<string, readonly JsonMember[]>();

  /** @param walk over all of the body, that was to be certain; null if it has read nothing, or is no JSON */
  constructor(body: Buffer, walk: JsonWalk | null) {
    this.problem =
      walk === null
        ? 'the body is not a JSON object'
        : (walk.uncertainty ?? problemOfBytes(body) ?? this.parseValues(walk));
  }

  /** The members with this name, in any case. @param name one of those that the walk looked for */
  all(name: string): readonly JsonMember[] {
    return this.found.get(name) ?? NONE;
  }

  private parseValues(walk: JsonWalk): string | null {
    for (const [name, values] of walk.values.all) {
      const members: JsonMember[] = [];
      for (const { start, end, text, elements } of values) {
        try {
          const value: unknown = text === null ? undefined : JSON.parse(text);
          members.push({ start, end, value, elements });
        } catch {
          return `the value of "${name}" is not valid JSON, at byte ${start}`;
        }
      }
      this.found.set(name, members);
    }
    return null;
  }
}

/** What no parser of JSON need accept, and the walk does not look for. */
function problemOfBytes(body: Buffer): string | null {
  if (!isUtf8(body)) return 'the body is not UTF-8';
  const nul = body.indexOf(0);
  return nul === -1 ? null : `the body is not valid JSON, at byte ${nul}`;
}

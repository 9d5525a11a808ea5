import type { JsonWalk } from './json-walk.js';
import { parseValue } from './kept-values.js';

/** Endpoints of which the request decides the cost, by what is read from it. */
const SPEECH = /\/audio\/speech$/;
const IMAGES = /\/images\/(?:generations|edits|variations)$/;
const TRAIT = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** What a request says of units that have a price. */
export interface RequestUnits {
  input_characters?: number;
  size?: string;
  quality?: string;
}

/** True if units are read from requests to this endpoint. */
export function hasRequestUnits(endpoint: string): boolean {
  return SPEECH.test(endpoint) || IMAGES.test(endpoint);
}

/**
 * Takes the units that the part of a body names that was read since the last time.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function takeRequestUnits(endpoint: string, json: JsonWalk, units: RequestUnits): void {
  if (SPEECH.test(endpoint)) {
    const text = valueOf(json, 'input');
    if (text !== undefined)
      units.input_characters = typeof text === 'string' ? charactersOf(text) : undefined;
    return;
  }
  for (const name of ['size', 'quality'] as const) {
    const word = valueOf(json, name);
    // What `auto` becomes, only the response says.
    if (typeof word === 'string' && word !== 'auto' && TRAIT.test(word)) units[name] = word;
    else if (word !== undefined) units[name] = undefined;
  }
}

/** Null for a value that is too long to be kept; undefined if there is none. */
function valueOf(json: JsonWalk, name: string): unknown {
  const member = json.all(name).findLast((one) => one.name === name);
  return member === undefined ? undefined : (parseValue(member) ?? null);
}

/** Characters of Unicode. */
function charactersOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

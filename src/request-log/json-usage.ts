import type { KeptAnswer } from './answer-copy.js';
import {
  findTrailing,
  isArrayEnd,
  isAtEnd,
  nextElement,
  type ObjectCursor,
  openObject,
} from './json-cursor.js';
import { metadataFigures, NO_USAGE, type TokenFigures, type Usage, usageFigures } from './token-figures.js';

/**
 * What a JSON answer says in the members of its outermost object, wherever the provider puts them: OpenAI (all
 * endpoints) and Anthropic messages have `model` and `usage`, Gemini has `modelVersion` and `usageMetadata`. A Gemini
 * stream without `alt=sse` is an array of such objects, each with the figures until there: the last one counts.
 *
 * Of an answer larger than the copy the beginning and the end are read; a figure counts only where it is certain that it
 * stands in the outermost object.
 */
export function readJsonUsage({ head, tail, whole }: KeptAnswer): Usage {
  const usage: Usage = { ...NO_USAGE };
  const array = nextElement(head, 0, true);
  if (array !== -1) {
    readElements(head, array, usage);
  } else {
    const cursor = openObject(head);
    if (cursor === null) return usage;
    readMembers(cursor, usage);
    // More than one document: whose figures they are is not said.
    if (cursor.end !== -1 && !(whole && isAtEnd(head, cursor.end)))
      return { ...NO_USAGE, model: usage.model };
  }
  if (whole) return usage;
  if (array === -1) return readEnd(tail, usage, isAtEnd);
  // What the first objects of an array gave is not the sum.
  return readEnd(tail, { ...NO_USAGE, model: usage.model }, isArrayEnd);
}

/**
 * Reads the end of a JSON document into what its beginning gave.
 *
 * @param isEnd does the object with the figures end here?
 */
export function readEnd(tail: Buffer, usage: Usage, isEnd: (json: Buffer, end: number) => boolean): Usage {
  for (const name of ['usage', 'usageMetadata', 'model', 'modelVersion']) {
    const cursor = findTrailing(tail, name, isEnd);
    if (cursor?.next()) readMember(cursor, usage);
  }
  return usage;
}

function readElements(json: Buffer, first: number, usage: Usage): void {
  for (let at = first; at !== -1;) {
    const cursor = openObject(json, at);
    if (cursor === null) return;
    readMembers(cursor, usage);
    if (cursor.end === -1) return;
    at = nextElement(json, cursor.end, false);
  }
}

/** Reads an object's own members into what is known. */
export function readMembers(cursor: ObjectCursor, usage: Usage): void {
  while (cursor.next()) readMember(cursor, usage);
}

/** Reads the member the cursor is on, if it says anything of the kind. */
export function readMember(cursor: ObjectCursor, usage: Usage): void {
  if (cursor.isKey('model') || cursor.isKey('modelVersion')) {
    usage.model = cursor.text() ?? usage.model;
  } else if (cursor.isKey('usage')) {
    keep(usage, usageFigures(cursor.value()));
  } else if (cursor.isKey('usageMetadata')) {
    keep(usage, metadataFigures(cursor.value()));
  }
}

function keep(usage: Usage, figures: TokenFigures | null): void {
  if (figures !== null) Object.assign(usage, figures);
}

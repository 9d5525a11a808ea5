import type { KeptAnswer } from './plain-copy.js';
import {
  findTrailing,
  isArrayEnd,
  isAtEnd,
  nextElement,
  type ObjectCursor,
  openObject,
  parseText,
  parseValue,
  type Span,
} from './json-cursor.js';
import { metadataFigures, NO_USAGE, type Usage, usageFigures } from './token-counts.js';

/**
 * What a JSON answer says in the members of its outermost object, wherever the provider puts them: OpenAI (all
 * endpoints) and Anthropic messages have `model` and `usage`, Gemini has `modelVersion` and `usageMetadata`. A Gemini
 * stream without `alt=sse` is an array of such objects, each with the figures until there: the last one counts.
 *
 * Of an answer larger than the copy the beginning and the end are read; a figure counts only where it is certain that it
 * stands in the outermost object.
 */
export function readJsonUsage({ head, tail, whole }: KeptAnswer): Usage {
  const members = new UsageMembers(head);
  const array = nextElement(head, 0, true);
  if (array !== -1) {
    readElements(head, array, members);
  } else {
    const cursor = openObject(head);
    if (cursor === null) return NO_USAGE;
    members.addAll(cursor);
    // More than one document: whose figures they are is not said.
    if (cursor.end !== -1 && !(whole && isAtEnd(head, cursor.end)))
      return { ...NO_USAGE, model: members.read().model };
  }
  const usage = members.read();
  if (whole) return usage;
  if (array === -1) return readEnd(tail, usage, isAtEnd);
  // What the first objects of an array gave is not the sum.
  return readEnd(tail, { ...NO_USAGE, model: usage.model }, isArrayEnd);
}

/**
 * Reads the end of a JSON document over what its beginning gave.
 *
 * @param isEnd does the object with the figures end here?
 */
export function readEnd(
  tail: Buffer,
  beginning: Usage,
  isEnd: (json: Buffer, end: number) => boolean,
): Usage {
  const members = new UsageMembers(tail);
  for (const name of ['usage', 'usageMetadata', 'model', 'modelVersion']) {
    const cursor = findTrailing(tail, name, isEnd);
    if (cursor?.next()) members.add(cursor);
  }
  return members.read(beginning);
}

function readElements(json: Buffer, first: number, members: UsageMembers): void {
  for (let at = first; at !== -1;) {
    const cursor = openObject(json, at);
    if (cursor === null) return;
    members.addAll(cursor);
    if (cursor.end === -1) return;
    at = nextElement(json, cursor.end, false);
  }
}

/**
 * The members of a document that report the model and the token counts. Of a repeated name the last value counts. The
 * values are parsed once, in the end: at most three, however often the names are repeated.
 */
export class UsageMembers {
  private model: Span | null = null;
  private usage: Span | null = null;
  private metadata: Span | null = null;

  constructor(private readonly json: Buffer) {}

  /** Takes the member the cursor is on, if it is one of those. */
  add(cursor: ObjectCursor): void {
    if (cursor.isKey('model') || cursor.isKey('modelVersion')) this.model = cursor.textSpan() ?? this.model;
    else if (cursor.isKey('usage')) this.usage = cursor.objectSpan() ?? this.usage;
    else if (cursor.isKey('usageMetadata')) this.metadata = cursor.objectSpan() ?? this.metadata;
  }

  /** Takes an object's own members. */
  addAll(cursor: ObjectCursor): void {
    while (cursor.next()) this.add(cursor);
  }

  /** @param known counts where these members report none */
  read(known: Usage = NO_USAGE): Usage {
    const { json } = this;
    return {
      ...known,
      ...usageFigures(parseValue(json, this.usage)),
      ...metadataFigures(parseValue(json, this.metadata)),
      model: parseText(json, this.model) ?? known.model,
    };
  }
}

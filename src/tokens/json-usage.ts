import type { CopiedBody } from './plain-copy.js';
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
import { metadataCounts, NO_USAGE, type Usage, usageCounts } from './token-counts.js';

/**
 * Reads the usage that a JSON response reports in the members of its outermost object, in any order: OpenAI (all
 * endpoints) and Anthropic messages have `model` and `usage`, Gemini has `modelVersion` and `usageMetadata`. A Gemini
 * stream without `alt=sse` is an array of such objects, each with the counts so far: the last one is used.
 *
 * For a response larger than the copy, the start and the end are read; a count is used only if it is certain that it is
 * in the outermost object.
 */
export function readJsonUsage({ head, tail, whole }: CopiedBody): Usage {
  const members = new UsageMembers(head);
  const array = nextElement(head, 0, true);
  if (array !== -1) {
    readElements(head, array, members);
  } else {
    const cursor = openObject(head);
    if (cursor === null) return NO_USAGE;
    members.addAll(cursor);
    // More than one document: it is not certain whose counts they are.
    if (cursor.end !== -1 && !(whole && isAtEnd(head, cursor.end)))
      return { ...NO_USAGE, model: members.read().model };
  }
  const usage = members.read();
  if (whole) return usage;
  if (array === -1) return readEnd(tail, usage, isAtEnd);
  // The first objects of an array do not contain the sum.
  return readEnd(tail, { ...NO_USAGE, model: usage.model }, isArrayEnd);
}

/**
 * Reads the end of a JSON document; its members override those of the start.
 *
 * @param isEnd whether the object with the counts ends here
 */
export function readEnd(tail: Buffer, start: Usage, isEnd: (json: Buffer, end: number) => boolean): Usage {
  const members = new UsageMembers(tail);
  for (const name of ['usage', 'usageMetadata', 'model', 'modelVersion']) {
    const cursor = findTrailing(tail, name, isEnd);
    if (cursor?.next()) members.add(cursor);
  }
  return members.read(start);
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
 * The members of a document that report the model and the token counts. Of a repeated name the last value is used. The
 * values are parsed once, at the end: at most three, however often the names are repeated.
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
      ...usageCounts(parseValue(json, this.usage)),
      ...metadataCounts(parseValue(json, this.metadata)),
      model: parseText(json, this.model) ?? known.model,
    };
  }
}

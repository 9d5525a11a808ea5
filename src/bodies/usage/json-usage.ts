import { findTrailing, isArrayEnd, isAtEnd, nextElement, openObject } from '../json-cursor.js';
import type { CopiedBody } from './plain-copy.js';
import { NO_USAGE, type ResponseUsage } from './token-usage.js';
import { USAGE_MEMBERS, UsageMembers } from './usage-members.js';

/**
 * Reads the usage that a JSON response reports in the members of its outermost object, in any order. A Gemini stream
 * without `alt=sse` is an array of such objects, each with the counts so far: the last one is used.
 *
 * For a response larger than the copy, the start and the end are read; a count is used only if it is certain that it is
 * in the outermost object.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function readJsonUsage({ head, tail, whole }: CopiedBody, endpoint: string): ResponseUsage {
  const members = new UsageMembers(head);
  const array = nextElement(head, 0, true);
  let isEnded: boolean;
  if (array !== -1) {
    isEnded = isArrayEnd(head, readElements(head, array, members));
  } else {
    const cursor = openObject(head);
    if (cursor === null) return NO_USAGE;
    members.addAll(cursor);
    isEnded = cursor.end !== -1;
    // More than one document: it is not certain whose counts they are.
    if (isEnded && !(whole && isAtEnd(head, cursor.end))) return withModel(null, members.model);
  }
  if (whole) return closedBy(withModel(members.read(endpoint), members.model), isEnded ? 'event' : undefined);
  const end = readEnd(tail, array === -1 ? isAtEnd : isArrayEnd);
  const last = end.read(endpoint);
  // The first objects of an array do not contain the sum.
  const usage = last ?? (array === -1 ? members.read(endpoint) : null);
  return closedBy(withModel(usage, end.model ?? members.model), last !== null ? 'event' : 'end');
}

/** Only what has usage is closed. @param usage changed, unless it is the shared one without counts */
function closedBy(usage: ResponseUsage, closing: ResponseUsage['closing']): ResponseUsage {
  if (closing !== undefined && hasUsage(usage)) usage.closing = closing;
  return usage;
}

/** Whether a response reported anything that has a price. */
export function hasUsage({ promptTokens, completionTokens, extra, reportedCost }: ResponseUsage): boolean {
  return promptTokens !== null || completionTokens !== null || extra !== null || reportedCost !== null;
}

/** @param usage changed */
export function withModel(usage: ResponseUsage | null, model: string | null): ResponseUsage {
  if (usage === null) return model === null ? NO_USAGE : { ...NO_USAGE, model };
  usage.model = model;
  return usage;
}

/**
 * Reads the end of a JSON document.
 *
 * @param isEnd whether the object with the counts ends here
 */
export function readEnd(tail: Buffer, isEnd: (json: Buffer, end: number) => boolean): UsageMembers {
  const members = new UsageMembers(tail);
  for (const name of USAGE_MEMBERS) {
    const cursor = findTrailing(tail, name, isEnd);
    if (cursor?.next()) members.add(cursor);
  }
  return members;
}

/** @returns the index just past the last whole element */
function readElements(json: Buffer, first: number, members: UsageMembers): number {
  let end = first;
  for (let at = first; at !== -1;) {
    const cursor = openObject(json, at);
    if (cursor === null) return first;
    members.addAll(cursor);
    if (cursor.end === -1) return first;
    end = cursor.end;
    at = nextElement(json, end, false);
  }
  return end;
}

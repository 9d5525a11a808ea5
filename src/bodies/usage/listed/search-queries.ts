import { ObjectCursor, parseValue } from '../../json-cursor.js';

/** In a text, its quotes are escaped. */
export const QUERIES = '"webSearchQueries"';
/** Queries of one response; Gemini makes a few. */
const MAX_QUERIES = 1_000;
/** Models before Gemini 3 bill a prompt with searches once, however many there were; later ones bill each query. */
const BILLS_PROMPTS = /gemini-(?:1|2)(?:[.-]|$)/;

/** Adds the queries of each `webSearchQueries` in these bytes. @returns false if one could not be read */
export function addQueries(json: Buffer, queries: Set<string>): boolean {
  let isCertain = true;
  for (let at = json.indexOf(QUERIES); at !== -1; at = json.indexOf(QUERIES, at)) {
    const cursor = new ObjectCursor(json, at);
    const found = cursor.next() ? parseValue(json, cursor.arraySpan()) : null;
    const [, end] = cursor.valueSpan();
    // Not closed: all that follows is a part of it.
    if (end === -1) return false;
    at = Math.max(end, at + QUERIES.length);
    if (!Array.isArray(found) || queries.size + found.length > MAX_QUERIES) isCertain = false;
    else for (const query of found as unknown[]) queries.add(String(query));
  }
  return isCertain;
}

/** The searches that Google bills. @param model as the response or the path names it */
export function billedSearches(queries: number, model: string): number {
  return BILLS_PROMPTS.test(model) ? Math.min(queries, 1) : queries;
}

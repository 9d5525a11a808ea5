import { asCount, field } from './dialects.js';
import type { Span } from '../bytes.js';
import { nextElement, openObject, parseValue } from '../json-cursor.js';

/**
 * The web searches of a response of OpenAI's Responses API, which its usage leaves out: as `tool_usage` counts them, otherwise
 * the items of `output` that are a search. Opening a page that was found, and finding text in it, are free.
 *
 * @param tools where `tool_usage` is
 * @param output where the array `output` is
 */
export function webSearches(json: Buffer, tools: Span | undefined, output: Span | undefined): number {
  const reported = field(field(parseValue(json, tools ?? null), 'web_search'), 'num_requests');
  return asCount(reported) ?? (output === undefined ? 0 : searchItems(json, output[0]));
}

function searchItems(json: Buffer, start: number): number {
  let count = 0;
  for (let at = nextElement(json, start, true); at !== -1;) {
    const item = openObject(json, at);
    let isCall = false;
    let isFree = false;
    while (item?.next()) {
      if (item.isKey('type')) isCall = item.isText('web_search_call');
      else if (item.isKey('status')) isFree ||= item.isText('failed');
      else if (item.isKey('action')) isFree ||= !isSearch(json, item.objectSpan());
    }
    if (isCall && !isFree) count++;
    at = item === null || item.end === -1 ? -1 : nextElement(json, item.end, false);
  }
  return count;
}

function isSearch(json: Buffer, action: Span | null): boolean {
  const cursor = action && openObject(json, action[0]);
  while (cursor?.next())
    if (cursor.isKey('type')) return !cursor.isText('open_page') && !cursor.isText('find_in_page');
  return true;
}

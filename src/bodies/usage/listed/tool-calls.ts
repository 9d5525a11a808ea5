import { asCount, field } from '../dialects.js';
import type { Span } from '../../bytes.js';
import { parseValue } from '../../json-cursor.js';
import type { ListedCounts } from './listed-counts.js';
import { type Item, ItemScan } from './item-scan.js';

/** More containers than this are not told apart. */
const MAX_CONTAINERS = 1_000;

/**
 * Counts the tools that OpenAI's Responses API ran, by the items of a response. Opening a page that was found, and finding
 * text in it, are free, and so are searches that failed. Code runs in a container, which is billed once.
 */
export class ToolCalls {
  private web = 0;
  private files = 0;
  private readonly containers = new Set<string>();
  private isUncertain = false;

  add({ type, status, action, container_id: container }: Item): void {
    if (type === 'web_search_call') {
      if (status !== 'failed' && action !== 'open_page' && action !== 'find_in_page') this.web++;
    } else if (type === 'file_search_call') {
      if (status !== 'failed') this.files++;
    } else if (type === 'code_interpreter_call') {
      if (container === undefined || this.containers.size >= MAX_CONTAINERS) this.isUncertain = true;
      else this.containers.add(container);
    }
  }

  addAll({ items, isFull }: ItemScan): void {
    for (const item of items) this.add(item);
    if (isFull) this.isUncertain = true;
  }

  get counts(): ListedCounts {
    const counts: ListedCounts = {};
    if (this.web > 0) counts.web_searches = this.web;
    if (this.files > 0) counts.file_searches = this.files;
    if (this.containers.size > 0) counts.code_sessions = this.containers.size;
    if (this.isUncertain) counts.uncounted_tools = 1;
    return counts;
  }
}

const START = Buffer.from('{"output":');
const END = Buffer.from('}');
/** The end of the names of all tool calls. */
const CALL = '_call"';

/**
 * The tools that a response ran.
 *
 * @param output where its array `output` is; undefined: it has none
 */
export function toolCalls(json: Buffer, output: Span | undefined): ListedCounts {
  const calls = new ToolCalls();
  if (output === undefined) return calls.counts;
  const list = json.subarray(...output);
  if (!list.includes(CALL)) return calls.counts;
  const scan = new ItemScan('output');
  for (const part of [START, list, END]) scan.add(part);
  calls.addAll(scan);
  return calls.counts;
}

/** The web searches that `tool_usage` reports, which is more certain than a list; null if it reports none. */
export function reportedSearches(json: Buffer, tools: Span | undefined): number | null {
  return asCount(field(field(parseValue(json, tools ?? null), 'web_search'), 'num_requests'));
}

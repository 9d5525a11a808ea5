import { framingOf } from '../framing/stream-framing.js';
import { SERVER_SENT_EVENTS } from '../framing/server-sent-events.js';
import type { ListedCounter, ListedCounts } from './listed-counts.js';
import { ItemScan } from './item-scan.js';
import { Lines, type LineSink } from './lines.js';
import { addQueries, billedSearches, QUERIES } from './search-queries.js';
import { ToolCalls } from './tool-calls.js';

const RESPONSES = /\/responses$/;
const IMAGES = /\/images\/(?:generations|edits|variations)$/;
const GEMINI = /:(?:stream)?[gG]enerateContent$/;

/**
 * The counter for a response; null if nothing is counted in it. Those of OpenAI's Responses API are counted only where the
 * copy is not the whole response: otherwise its last event has the list.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function counterFor(contentType: string | null | undefined, endpoint: string): ListedCounter | null {
  const framing = framingOf(contentType);
  if (framing !== null && framing !== SERVER_SENT_EVENTS) return null;
  const isStream = framing !== null;
  if (RESPONSES.test(endpoint)) return isStream ? new ToolEvents() : new ToolList();
  if (IMAGES.test(endpoint)) return isStream ? new ImageEvents() : new ImageList();
  if (GEMINI.test(endpoint)) return isStream ? new QueryEvents(endpoint) : new QueryList(endpoint);
  return null;
}

/** True if the counter is also asked about responses of which the copy has everything. */
export function countsAll(endpoint: string): boolean {
  return IMAGES.test(endpoint) || GEMINI.test(endpoint);
}

class ToolList implements ListedCounter {
  private readonly scan = new ItemScan('output');

  add(chunk: Buffer): void {
    this.scan.add(chunk);
  }

  end(): ListedCounts {
    const calls = new ToolCalls();
    calls.addAll(this.scan);
    return calls.counts;
  }
}

class ImageList implements ListedCounter {
  private readonly scan = new ItemScan('data');

  add(chunk: Buffer): void {
    this.scan.add(chunk);
  }

  end(): ListedCounts {
    const { items, isFull } = this.scan;
    return items.length === 0 || isFull ? {} : { images: items.length };
  }
}

/** Scans the events whose line has a mark, and those whose line is too long to be searched. */
abstract class EventScan implements ListedCounter, LineSink {
  private readonly lines = new Lines(this);
  private scan: ItemScan | null = null;

  /** @param mark in the data of the events that count */
  constructor(private readonly mark: string) {}

  add(chunk: Buffer): void {
    this.lines.add(chunk);
  }

  end(): ListedCounts {
    this.lines.end();
    return this.counts;
  }

  onLine(line: Buffer): void {
    if (!line.includes(this.mark)) return;
    const scan = new ItemScan('item');
    scan.add(line);
    this.onEvent(scan);
  }

  onPart(part: Buffer): void {
    (this.scan ??= new ItemScan('item')).add(part);
  }

  onPartsEnd(): void {
    if (this.scan !== null) this.onEvent(this.scan);
    this.scan = null;
  }

  protected abstract readonly counts: ListedCounts;
  protected abstract onEvent(event: ItemScan): void;
}

class ToolEvents extends EventScan {
  private readonly calls = new ToolCalls();

  constructor() {
    super('output_item.done');
  }

  protected get counts(): ListedCounts {
    return this.calls.counts;
  }

  protected onEvent(event: ItemScan): void {
    if (event.type === 'response.output_item.done') this.calls.addAll(event);
  }
}

class ImageEvents extends EventScan {
  private images = 0;

  constructor() {
    super('.completed"');
  }

  protected get counts(): ListedCounts {
    return this.images === 0 ? {} : { images: this.images };
  }

  protected onEvent({ type }: ItemScan): void {
    if (type === 'image_generation.completed' || type === 'image_edit.completed') this.images++;
  }
}

class QueryEvents implements ListedCounter, LineSink {
  private readonly lines = new Lines(this);
  private readonly queries = new Set<string>();
  private readonly inLong = new MarkSearch();
  private isCertain = true;

  constructor(private readonly endpoint: string) {}

  add(chunk: Buffer): void {
    this.lines.add(chunk);
  }

  end(model: string | null): ListedCounts {
    this.lines.end();
    return searchCounts(this.queries.size, this.isCertain, model ?? this.endpoint);
  }

  onLine(line: Buffer): void {
    if (!addQueries(line, this.queries)) this.isCertain = false;
  }

  onPart(part: Buffer): void {
    if (this.inLong.has(part)) this.isCertain = false;
  }

  onPartsEnd(): void {
    this.inLong.reset();
  }
}

/** A response in one document: one that is longer than its copy is only searched for queries. */
class QueryList implements ListedCounter {
  private readonly search = new MarkSearch();
  private readonly queries = new Set<string>();
  private isFirst = true;
  private isCertain = true;

  constructor(private readonly endpoint: string) {}

  add(chunk: Buffer): void {
    const isFound = this.search.has(chunk);
    if (this.isFirst ? !addQueries(chunk, this.queries) : isFound) this.isCertain = false;
    this.isFirst = false;
  }

  end(model: string | null): ListedCounts {
    return searchCounts(this.queries.size, this.isCertain, model ?? this.endpoint);
  }
}

/** Finds a mark in chunks that may cut it. */
class MarkSearch {
  private rest = '';

  has(chunk: Buffer): boolean {
    const start = this.rest + chunk.toString('latin1', 0, QUERIES.length - 1);
    this.rest =
      chunk.length < QUERIES.length
        ? start.slice(1 - QUERIES.length)
        : chunk.toString('latin1', chunk.length + 1 - QUERIES.length);
    return start.includes(QUERIES) || chunk.includes(QUERIES);
  }

  reset(): void {
    this.rest = '';
  }
}

function searchCounts(queries: number, isCertain: boolean, model: string): ListedCounts {
  const searches = billedSearches(queries, model);
  return {
    ...(searches > 0 && { web_searches: searches }),
    ...(!isCertain && { uncounted_tools: 1 }),
  };
}

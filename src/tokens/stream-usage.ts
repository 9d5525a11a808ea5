import type { CopiedBody } from './plain-copy.js';
import { eventData, streamText } from './event-stream.js';
import { isAtEnd, ObjectCursor, openObject } from './json-cursor.js';
import { readEnd, UsageMembers } from './json-usage.js';
import { NO_USAGE, type TokenCounts, type Usage } from './token-counts.js';

/** Cheap sign of an event worth parsing; most have no count, or `"usage":null`. In a text its quotes are escaped. */
const HAS_COUNTS = /"usage(?:Metadata)?"\s*:\s*\{/;
/** The model is in the first event, or soon after those that some services put before it. */
const EVENTS_WITH_MODEL = 16;
/** The counts are in the last event that has any, unless it names them without a number. */
const EVENTS_WITH_COUNTS = 64;

/**
 * Reads the usage that a stream of server-sent events reports. If several events have counts, each contains the sum so
 * far, so the last one is used:
 *
 * - OpenAI chat and completions: `usage` in the last chunk, with `stream_options.include_usage` only; without, none.
 * - OpenAI responses: `response.usage` in `response.completed`, `response.incomplete` or `response.failed`.
 * - OpenAI audio and images: `usage` in `transcript.text.done`, `image_generation.completed` and their like.
 * - Anthropic messages: `usage` in `message_delta`, over that of `message_start`, whose output count covers only the
 *   first token and is ignored.
 * - Gemini: `usageMetadata` in every event.
 *
 * For a stream larger than the copy, its start gives the model and `message_start`, its end the rest.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function readStreamUsage({ head, tail, whole }: CopiedBody, endpoint: string): Usage {
  const events = eventData(streamText(head));
  if (events === null) return NO_USAGE;
  const start = readStart(events);
  const end = whole ? lastCounts(events) : readTail(tail, endpoint);
  const model = start.model ?? end?.model ?? null;
  if (end === null) return { ...NO_USAGE, ...start.started, model };
  return {
    model,
    prompt_tokens: end.prompt_tokens ?? start.started?.prompt_tokens ?? null,
    completion_tokens: end.completion_tokens,
    cached_tokens: end.cached_tokens ?? start.started?.cached_tokens ?? null,
    reasoning_tokens: end.reasoning_tokens,
  };
}

/** The model, and the counts of Anthropic's `message_start` that are already final. */
function readStart(events: readonly string[]): { model: string | null; started: TokenCounts | null } {
  for (const data of events.slice(0, EVENTS_WITH_MODEL)) {
    const { model, started, ...counts } = readEvent(data);
    // Azure OpenAI's first event, on the prompt's content filter, has an empty one.
    if (model === null) continue;
    return {
      model,
      started: started ? { ...counts, completion_tokens: null, reasoning_tokens: null } : null,
    };
  }
  return { model: null, started: null };
}

function lastCounts(events: readonly string[]): Usage | null {
  let tries = 0;
  for (let i = events.length - 1; i >= 0 && tries < EVENTS_WITH_COUNTS; i--) {
    const data = events[i]!;
    if (!HAS_COUNTS.test(data)) continue;
    tries++;
    const { started, ...usage } = readEvent(data);
    if (!started && hasCounts(usage)) return usage;
  }
  return null;
}

function hasCounts(usage: Usage): boolean {
  return (
    (usage.prompt_tokens ?? usage.completion_tokens ?? usage.cached_tokens ?? usage.reasoning_tokens) !== null
  );
}

/** Reads one event, and the `response` or `message` in it. `started`: it is `message_start`. */
function readEvent(data: string): Usage & { started: boolean } {
  const json = Buffer.from(data);
  const members = new UsageMembers(json);
  let started = false;
  const cursor = openObject(json);
  while (cursor?.next()) {
    if (cursor.isKey('type')) {
      started = cursor.isText('message_start');
    } else if (cursor.isKey('response') || cursor.isKey('message')) {
      const carried = cursor.object();
      if (carried !== null) members.addAll(carried);
    } else {
      members.add(cursor);
    }
  }
  return { ...members.read(), started };
}

/** Reads the end of a stream whose middle was not kept: it starts somewhere in an event. */
function readTail(tail: Buffer, endpoint: string): Usage | null {
  const text = streamText(tail);
  const blank = text.indexOf('\n\n');
  const broken = (blank === -1 ? text : text.slice(0, blank)).trimEnd();
  const events = blank === -1 ? [] : eventData(text.slice(blank + 2));
  if (events === null) return null;
  const found = lastCounts(events);
  if (found !== null) return found;
  // A line that is a JSON object by itself is whole, even if what stood before it in its event was lost.
  const line = broken.slice(broken.lastIndexOf('\n') + 1);
  if (line.startsWith('data:')) return lastCounts([line.slice(5)]);
  return line === broken && events.every((data) => data === '[DONE]') ? readBroken(line, endpoint) : null;
}

/**
Reads the end of the last event if it is larger than the copy: `response.completed` repeats the request's
 * instructions and tools and the whole output, `image_generation.completed` holds the image. In events of the OpenAI
 * responses API nothing but `response` holds a `usage` of its own.
 */
function readBroken(line: string, endpoint: string): Usage | null {
  const json = Buffer.from(line);
  return readEnd(json, NO_USAGE, endpoint.endsWith('/responses') ? isNestedEnd : isAtEnd);
}

/** True if the object around the one that ended here ends the document. */
function isNestedEnd(json: Buffer, end: number): boolean {
  const outer = new ObjectCursor(json, end, true);
  while (outer.next());
  return outer.end !== -1 && isAtEnd(json, outer.end);
}

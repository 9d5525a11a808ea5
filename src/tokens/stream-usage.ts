import type { KeptAnswer } from './plain-copy.js';
import { eventData, streamText } from './event-stream.js';
import { isAtEnd, ObjectCursor, openObject } from './json-cursor.js';
import { readEnd, UsageMembers } from './json-usage.js';
import { NO_USAGE, type TokenFigures, type Usage } from './token-counts.js';

/** Cheap sign of an event worth parsing; most have no figure, or `"usage":null`. In a text its quotes are escaped. */
const HAS_FIGURES = /"usage(?:Metadata)?"\s*:\s*\{/;
/** The model is in the first event, or soon after those that some services put before it. */
const EVENTS_WITH_MODEL = 16;
/** The figures are in the last event that has any, unless it names them without a number. */
const EVENTS_WITH_FIGURES = 64;

/**
 * What a stream of server-sent events says of its cost. Where several events have figures, each gives the sum until
 * there, so the last one counts:
 *
 * - OpenAI chat and completions: `usage` in the last chunk, with `stream_options.include_usage` only; without, none.
 * - OpenAI responses: `response.usage` in `response.completed`, `response.incomplete` or `response.failed`.
 * - OpenAI audio and images: `usage` in `transcript.text.done`, `image_generation.completed` and their like.
 * - Anthropic messages: `usage` in `message_delta`, over that of `message_start`, whose output figure is only of the
 *   first token and so counts for nothing.
 * - Gemini: `usageMetadata` in every event.
 *
 * Of a stream larger than the copy, its beginning gives the model and `message_start`, its end the rest.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function readStreamUsage({ head, tail, whole }: KeptAnswer, endpoint: string): Usage {
  const events = eventData(streamText(head));
  if (events === null) return NO_USAGE;
  const beginning = readBeginning(events);
  const end = whole ? lastFigures(events) : readTail(tail, endpoint);
  const model = beginning.model ?? end?.model ?? null;
  if (end === null) return { ...NO_USAGE, ...beginning.started, model };
  return {
    model,
    prompt_tokens: end.prompt_tokens ?? beginning.started?.prompt_tokens ?? null,
    completion_tokens: end.completion_tokens,
    cached_tokens: end.cached_tokens ?? beginning.started?.cached_tokens ?? null,
    reasoning_tokens: end.reasoning_tokens,
  };
}

/** The model, and the figures of Anthropic's `message_start` that are already final. */
function readBeginning(events: readonly string[]): { model: string | null; started: TokenFigures | null } {
  for (const data of events.slice(0, EVENTS_WITH_MODEL)) {
    const { model, started, ...figures } = readEvent(data);
    // Azure OpenAI's first event, on the prompt's content filter, has an empty one.
    if (model === null) continue;
    return {
      model,
      started: started ? { ...figures, completion_tokens: null, reasoning_tokens: null } : null,
    };
  }
  return { model: null, started: null };
}

function lastFigures(events: readonly string[]): Usage | null {
  let tries = 0;
  for (let i = events.length - 1; i >= 0 && tries < EVENTS_WITH_FIGURES; i--) {
    const data = events[i]!;
    if (!HAS_FIGURES.test(data)) continue;
    tries++;
    const { started, ...usage } = readEvent(data);
    if (!started && hasFigures(usage)) return usage;
  }
  return null;
}

function hasFigures(usage: Usage): boolean {
  return (
    (usage.prompt_tokens ?? usage.completion_tokens ?? usage.cached_tokens ?? usage.reasoning_tokens) !== null
  );
}

/** What one event says, itself or in the `response` or `message` it carries; `started`: it is `message_start`. */
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

/** The end of a stream whose middle was not kept: it begins somewhere in an event. */
function readTail(tail: Buffer, endpoint: string): Usage | null {
  const text = streamText(tail);
  const blank = text.indexOf('\n\n');
  const broken = (blank === -1 ? text : text.slice(0, blank)).trimEnd();
  const events = blank === -1 ? [] : eventData(text.slice(blank + 2));
  if (events === null) return null;
  const found = lastFigures(events);
  if (found !== null) return found;
  // A line that is a JSON object by itself is whole, even if what stood before it in its event was lost.
  const line = broken.slice(broken.lastIndexOf('\n') + 1);
  if (line.startsWith('data:')) return lastFigures([line.slice(5)]);
  return line === broken && events.every((data) => data === '[DONE]') ? readBroken(line, endpoint) : null;
}

/**
 * The end of the stream's last event, which is larger than the copy: `response.completed` repeats the request's
 * instructions and tools and the whole output, `image_generation.completed` holds the image. In events of the OpenAI
 * responses API nothing but `response` holds a `usage` of its own.
 */
function readBroken(line: string, endpoint: string): Usage | null {
  const json = Buffer.from(line);
  return readEnd(json, NO_USAGE, endpoint.endsWith('/responses') ? isNestedEnd : isAtEnd);
}

/** Does the object around the one that ended here end the document? */
function isNestedEnd(json: Buffer, end: number): boolean {
  const outer = new ObjectCursor(json, end, true);
  while (outer.next());
  return outer.end !== -1 && isAtEnd(json, outer.end);
}

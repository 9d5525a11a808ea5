import { closingOf, saysFailed } from './closing-event.js';
import type { Json } from './dialects.js';
import { isAtEnd, ObjectCursor, openObject } from '../json-cursor.js';
import { readEnd, withModel } from './json-usage.js';
import { normaliseUsage } from './normalise-usage.js';
import type { CopiedBody } from './plain-copy.js';
import type { StreamFraming } from './framing/stream-events.js';
import { readEventError } from './provider-error.js';
import { NO_USAGE, type ResponseUsage } from './token-usage.js';
import { UsageMembers } from './usage-members.js';

/** Cheap sign of an event worth parsing; most have no count, or `"usage":null`. In a text its quotes are escaped. */
const HAS_COUNTS =
  /"(?:usage(?:Metadata)?|meta)"\s*:\s*\{|"(?:(?:prompt_)?eval_count|totalOutputTextTokenCount)"\s*:\s*\d/;
/** Bedrock adds these to the last event of any model. Its own usage is better where it reports any. */
const HAS_METRICS = /"amazon-bedrock-invocationMetrics"\s*:\s*\{/;
/** The model is in the first event, or soon after those that some services put before it. */
const EVENTS_WITH_MODEL = 16;
/** The counts are in the last event that has any, unless it names them without a number. */
const EVENTS_WITH_COUNTS = 64;

/** What one event reports. */
interface StreamEvent {
  members: UsageMembers;
  /** It is Anthropic's `message_start`. */
  isStart: boolean;
  /** Its JSON has an end: the event was not cut. */
  isWhole: boolean;
}

/**
 * Reads the usage that a stream reports. If several events have counts, each contains the sum so far, so the last one is
 * used:
 *
 * - OpenAI chat and completions: `usage` in the last chunk, with `stream_options.include_usage` only; without, none.
 * - OpenAI responses: `response.usage` in `response.completed`, `response.incomplete` or `response.failed`.
 * - OpenAI audio and images: `usage` in `transcript.text.done`, `image_generation.completed` and their like.
 * - Anthropic messages: `usage` in `message_delta`, over that of `message_start`, whose output count covers only the
 *   first token and is ignored.
 * - Gemini: `usageMetadata` in every event; Interactions: `interaction.usage` in the last.
 * - Groq: `x_groq.usage` in the last chunk, at first without `usage` beside it.
 * - Cohere: `response.meta` (v1) or `delta.usage` (v2) in the last event.
 * - Bedrock: `usage` in the event `metadata`, or the events of the model and `amazon-bedrock-invocationMetrics`.
 * - Titan on Bedrock: `totalOutputTextTokenCount` in the last event, also of a stream without those metrics.
 * - Ollama: `prompt_eval_count` and `eval_count` in the last line.
 *
 * A stream that fails ends with an event that reports the error.
 *
 * For a stream larger than the copy, its start gives the model and `message_start`, its end the rest.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function readStreamUsage(
  { head, tail, whole }: CopiedBody,
  endpoint: string,
  framing: StreamFraming,
): ResponseUsage {
  const events = framing.events(head);
  if (events === null) return NO_USAGE;
  const start = readStart(events);
  const last = whole ? { events, broken: null } : framing.lastEvents(tail);
  if (last === null) return withModel(null, start.model);
  const { usage, model, closing } = readLast(last.events, last.broken, endpoint, start.usage);
  const known = usage ?? (start.usage && normaliseUsage(start.usage, endpoint));
  const read = closed(withModel(known, start.model ?? model), closing);
  const error = readEventError(last.events);
  return error === null ? read : { ...read, error };
}

/** @param usage not changed: it may be the shared one without counts */
function closed(usage: ResponseUsage, closing: ResponseUsage['closing']): ResponseUsage {
  return closing === undefined ? usage : { ...usage, closing };
}

/** The model, and the usage of `message_start`. */
function readStart(events: readonly string[]): { model: string | null; usage: Json | null } {
  for (const data of events.slice(0, EVENTS_WITH_MODEL)) {
    const { members, isStart } = readEvent(data);
    // Azure OpenAI's first event, on the prompt's content filter, has an empty one.
    const { model } = members;
    if (model !== null) return { model, usage: isStart ? withoutOutput(members.rawUsage()) : null };
  }
  return { model: null, usage: null };
}

function withoutOutput(usage: Json | null): Json | null {
  return usage && { ...usage, output_tokens: null, output_tokens_details: null };
}

/** The last event that reports usage. */
interface LastUsage {
  usage: ResponseUsage | null;
  /** The model that it names. */
  model: string | null;
  closing?: ResponseUsage['closing'];
}

function readLast(
  events: readonly string[],
  broken: string | null,
  endpoint: string,
  started: Json | null,
): LastUsage {
  for (const sign of [HAS_COUNTS, HAS_METRICS]) {
    let tries = 0;
    for (let i = events.length - 1; i >= 0 && tries < EVENTS_WITH_COUNTS; i--) {
      if (!sign.test(events[i]!)) continue;
      tries++;
      const { members, isStart, isWhole } = readEvent(events[i]!);
      if (isStart) continue;
      const usage = members.read(endpoint, sign === HAS_COUNTS ? started : null);
      if (usage === null) continue;
      // The output of a stream that reported none yet is not known, whatever ended it.
      const isAll = isWhole && (usage.completionTokens !== null || started === null);
      const closing = isAll ? closingOf(events, i, endpoint, hasCountsBefore(events, endpoint)) : undefined;
      return { usage, model: members.model, closing };
    }
  }
  if (broken === null) {
    return { usage: null, model: null, ...(hasFailed(events) && { closing: 'event' as const }) };
  }
  const members = readBroken(broken, endpoint);
  const usage = members.read(endpoint);
  // It was found because its document ends here.
  return { usage, model: members.model, ...(usage !== null && { closing: 'event' as const }) };
}

function hasFailed(events: readonly string[]): boolean {
  return events.some((data) => saysFailed(data) && readEvent(data).isWhole);
}

/** Whether an event before this one has counts too. */
function hasCountsBefore(events: readonly string[], endpoint: string): (at: number) => boolean {
  return (at) =>
    events
      .slice(0, at)
      .some((data) => HAS_COUNTS.test(data) && readEvent(data).members.read(endpoint) !== null);
}

/** Members whose value contains the usage: of OpenAI responses and Cohere v1, Anthropic, Cohere v2 and Interactions. */
const CARRIERS = ['response', 'message', 'delta', 'interaction'] as const;

/** Reads one event, and the objects in it that may carry the usage. */
function readEvent(data: string): StreamEvent {
  const json = Buffer.from(data);
  const members = new UsageMembers(json);
  let isStart = false;
  const cursor = openObject(json);
  while (cursor?.next()) {
    if (cursor.isKey('type')) {
      isStart = cursor.isText('message_start');
    } else if (CARRIERS.some((name) => cursor.isKey(name))) {
      const carried = cursor.object();
      if (carried !== null) members.addAll(carried);
    } else {
      members.add(cursor);
    }
  }
  return { members, isStart, isWhole: cursor !== null && cursor.end !== -1 };
}

/**
 * Reads the end of the last event if it is larger than the copy: `response.completed` repeats the request's
 * instructions and tools and the whole output, `image_generation.completed` holds the image. In events of the OpenAI
 * responses API nothing but `response` holds a `usage` of its own.
 */
function readBroken(end: string, endpoint: string): UsageMembers {
  return readEnd(Buffer.from(end), endpoint.endsWith('/responses') ? isNestedEnd : isAtEnd);
}

/** True if the object around the one that ended here ends the document. */
function isNestedEnd(json: Buffer, end: number): boolean {
  const outer = new ObjectCursor(json, end, true);
  while (outer.next());
  return outer.end !== -1 && isAtEnd(json, outer.end);
}

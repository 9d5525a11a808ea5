import { field, type Json } from './dialects.js';

/**
 * Signs in an event that has the usage of its stream that it is the last one with usage, or that no more is generated.
 * In a text its quotes would be escaped.
 */
const CLOSING = new RegExp(
  [
    // OpenAI chat with `include_usage`, after the last choice.
    '"choices"\\s*:\\s*\\[\\s*\\]',
    // Anthropic, also on Bedrock: `message_delta`. In `message_start` it is null.
    '"stop_reason"\\s*:\\s*"',
    // Titan on Bedrock.
    '"completionReason"\\s*:\\s*"',
    // Titan, also where a guardrail stopped it: it is null before.
    '"totalOutputTextTokenCount"\\s*:\\s*\\d',
    // Ollama; Cohere v1.
    '"(?:done|is_finished)"\\s*:\\s*true',
    // The last event of any model on Bedrock.
    '"amazon-bedrock-invocationMetrics"\\s*:',
    // OpenAI responses, audio and images; Cohere v2; Gemini Interactions.
    '"(?:type|event_type)"\\s*:\\s*"(?:[a-z_.]+\\.(?:completed?|incomplete|failed|cancelled|done)|message-end|stream-end)"',
  ].join('|'),
);
/** More was generated after the usage of a stream of OpenAI chat: some servers report the input ahead of it. */
const CHOICE = /"choices"\s*:\s*\[\s*\{/;
/** Of Gemini, in every event. */
const OF_GEMINI = /"usageMetadata"\s*:/;
/** Bedrock's Converse: only the event `metadata`, which is the last one, has usage. */
const CONVERSE = /\/converse-stream$/;
/** The event that ends a response of OpenAI's, with `usage: null` if it failed before it began. */
const FAILED = /"type"\s*:\s*"response\.failed"/;
/** Of Anthropic, where `message_delta` gives no reason. */
const STOPPED = /"type"\s*:\s*"message_stop"/;
const FINISH_REASON = /"finish_reason"\s*:\s*"/;
const DONE = '[DONE]';

/**
 * What says that the usage of an event is all usage of its stream; undefined: nothing does, so that the stream may have been
 * cut.
 *
 * @param events of the stream, or of its end
 * @param at of the event with the usage, which is whole
 * @param countsBefore an earlier event of the same kind has counts
 */
export function closingOf(
  events: readonly string[],
  at: number,
  endpoint: string,
  countsBefore: (before: number) => boolean,
): 'event' | 'end' | undefined {
  const event = events[at]!;
  if (OF_GEMINI.test(event)) return endsGemini(event) ? 'event' : undefined;
  const isFollowed = events.slice(at + 1).some((data) => CHOICE.test(data));
  if (!isFollowed && (CLOSING.test(event) || CONVERSE.test(endpoint))) return 'event';
  if (STOPPED.test(events.at(-1)!)) return 'event';
  // OpenAI chat whose usage stands beside a choice: Mistral, Groq and others; vLLM has it in every chunk.
  if (!isFollowed && events.at(-1)?.trim() === DONE) return 'event';
  if (countsBefore(at)) return undefined;
  return events.slice(0, at + 1).some((data) => FINISH_REASON.test(data)) ? 'end' : undefined;
}

/** Parsed, because the arguments of a function call are JSON of the model, not text. */
function endsGemini(event: string): boolean {
  const { candidates, promptFeedback } = parse(event);
  if (typeof field(promptFeedback, 'blockReason') === 'string') return true;
  const all = Array.isArray(candidates) ? (candidates as unknown[]) : [];
  return all.length > 0 && all.every((candidate) => typeof field(candidate, 'finishReason') === 'string');
}

function parse(event: string): Json {
  try {
    return (JSON.parse(event) ?? {}) as Json;
  } catch {
    return {};
  }
}

/** True if an event says that the response failed, which has no usage if it failed before it began. */
export function saysFailed(event: string): boolean {
  return FAILED.test(event);
}

import { AWS_EVENT_STREAM } from './aws-event-stream.js';
import { LINES } from './line-stream.js';
import type { StreamFraming } from './stream-events.js';
import { SERVER_SENT_EVENTS } from './server-sent-events.js';

/** By media type, in lower case. */
const FRAMINGS: Readonly<Record<string, StreamFraming>> = {
  'text/event-stream': SERVER_SENT_EVENTS,
  // Bedrock.
  'application/vnd.amazon.eventstream': AWS_EVENT_STREAM,
  // Ollama.
  'application/x-ndjson': LINES,
  'application/ndjson': LINES,
  // Cohere v1.
  'application/stream+json': LINES,
};

const STREAMED = new RegExp(
  `^\\s*(${Object.keys(FRAMINGS).join('|').replace(/[.+]/g, '\\$&')})\\s*(?:;|$)`,
  'i',
);

/** The framing of a stream with this `Content-Type`; null if the response is no stream. */
export function framingOf(contentType: string | null | undefined): StreamFraming | null {
  if (contentType === null || contentType === undefined) return null;
  const [, type] = STREAMED.exec(contentType) ?? [];
  return type === undefined ? null : FRAMINGS[type.toLowerCase()]!;
}

/** True if the response is a stream of events. */
export function isStreamed(contentType: string | null | undefined): boolean {
  return contentType !== null && contentType !== undefined && STREAMED.test(contentType);
}

import { AWS_EVENT_STREAM } from './aws-event-stream.js';
import type { LastEvents, StreamFraming } from './stream-events.js';
import { SERVER_SENT_EVENTS } from './server-sent-events.js';

/** One JSON document a line (NDJSON). */
export const LINES: StreamFraming = {
  events: (bytes) => linesOf(bytes.toString('utf8')),
  lastEvents(bytes): LastEvents {
    const text = bytes.toString('utf8').trimEnd();
    const end = text.indexOf('\n');
    // What comes before the first line end is the rest of a line.
    return end === -1 ? { events: [], broken: text } : { events: linesOf(text.slice(end + 1)), broken: null };
  },
};

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

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

import { createParser } from 'eventsource-parser';
import { JSON_BYTES } from '../../bytes.js';
import type { LastEvents, StreamFraming } from './stream-events.js';

/** The parser builds an error with a stack for each line it does not know: 3 to 10 µs a line, 0.2 s for 128 KiB of junk. */
const MAX_ERRORS = 500;

const { NEWLINE, RETURN } = JSON_BYTES;

/**
 * The bytes of an event stream as text with one kind of line end. The parser searches the whole rest of its input for the
 * kinds that do not occur, which takes time by the square of it.
 */
function streamText(bytes: Buffer): string {
  const text = (bytes.includes(RETURN) ? withLineFeeds(bytes) : bytes).toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** Byte by byte: a regular expression takes 100 times as long where every byte is a line end. */
function withLineFeeds(bytes: Buffer): Buffer {
  const plain = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte !== RETURN) plain[length++] = byte;
    else if (bytes[i + 1] !== NEWLINE) plain[length++] = NEWLINE;
  }
  return plain.subarray(0, length);
}

/**
 * Returns the data of each event, the last one also if its blank line is missing: some providers omit it, and the reader
 * of a truncated event takes only its complete members.
 *
 * @param text of streamText(), starting at an event
 * @returns null if too many lines are not those of an event stream: the events before them may lack the last counts
 */
function eventData(text: string): string[] | null {
  const events: string[] = [];
  let errors = 0;
  const parser = createParser({
    onEvent: ({ data }) => events.push(data),
    onError: () => {
      if (++errors > MAX_ERRORS) throw new Error('not an event stream');
    },
  });
  try {
    parser.feed(text);
    parser.feed('\n\n');
  } catch {
    return null;
  }
  return events;
}

/** Server-sent events (WHATWG HTML, 9.2). */
export const SERVER_SENT_EVENTS: StreamFraming = {
  events: (bytes) => eventData(streamText(bytes)),
  lastEvents(bytes): LastEvents | null {
    const text = streamText(bytes);
    const blank = text.indexOf('\n\n');
    const first = (blank === -1 ? text : text.slice(0, blank)).trimEnd();
    const events = blank === -1 ? [] : eventData(text.slice(blank + 2));
    if (events === null) return null;
    // A line that is a JSON object by itself is whole, even if what stood before it in its event was lost.
    const line = first.slice(first.lastIndexOf('\n') + 1);
    if (line.startsWith('data:')) return { events: [line.slice(5), ...events], broken: null };
    const isLast = line === first && events.every((data) => data === '[DONE]');
    return { events, broken: isLast ? line : null };
  },
};

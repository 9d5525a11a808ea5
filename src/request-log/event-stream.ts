import { createParser } from 'eventsource-parser';

/** The parser builds an error with a stack for each line it does not know: 3 µs a line, 0.2 s for 128 KiB of junk. */
const MOST_FAULTS = 1_000;

/** Is this the media type of server-sent events (WHATWG HTML, 9.2.5)? */
export function isStreamed(contentType: string | null | undefined): boolean {
  return (
    contentType !== null && contentType !== undefined && /^\s*text\/event-stream\s*(;|$)/i.test(contentType)
  );
}

/**
 * The bytes of an event stream as text with one kind of line end. The parser searches the whole rest of its input for the
 * kinds that do not occur, which takes time by the square of it.
 */
export function streamText(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text;
  return plain.includes('\r') ? plain.replace(/\r\n?/g, '\n') : plain;
}

/**
 * The data of each event, the last one also where its blank line is missing: some providers forget it, and of an event
 * that was cut off its reader takes no more than what is whole.
 *
 * @param text of streamText(), beginning at an event
 */
export function eventData(text: string): string[] {
  const events: string[] = [];
  let faults = 0;
  const parser = createParser({
    onEvent: ({ data }) => events.push(data),
    onError: () => {
      if (++faults > MOST_FAULTS) throw new Error('not an event stream');
    },
  });
  try {
    parser.feed(text);
    parser.feed('\n\n');
  } catch {
    // What was read until there stands.
    return events;
  }
  return events;
}

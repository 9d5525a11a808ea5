import type { LastEvents, StreamFraming } from './stream-events.js';

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

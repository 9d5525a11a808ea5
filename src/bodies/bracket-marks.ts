import { JSON_BYTES } from './bytes.js';

const { CLOSE_BRACE, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE } = JSON_BYTES;

const MARKS = [QUOTE, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] as const;

/** Finds quotes and brackets in a chunk, in its order, with native searches that read each byte once for each of them. */
export class BracketMarks {
  /** The next place of each mark; -1 before its first search. */
  private readonly places = [-1, -1, -1, -1, -1];

  constructor(private readonly chunk: Buffer) {}

  /** Index of the next quote or bracket; the length of the chunk if there is none. */
  next(from: number): number {
    const { chunk, places } = this;
    let next = chunk.length;
    for (let i = 0; i < MARKS.length; i++) {
      let place = places[i]!;
      if (place < from) {
        place = chunk.indexOf(MARKS[i]!, from);
        if (place === -1) place = chunk.length;
        places[i] = place;
      }
      if (place < next) next = place;
    }
    return next;
  }
}

import { JSON_BYTES } from './bytes.js';

const CRLF = Buffer.from('\r\n');
const END_OF_HEAD = Buffer.from('\r\n\r\n');
/** Two hyphens and a boundary of 70 characters (RFC 2046, section 5.1.1). */
const MAX_DELIMITER = 72;
const MAX_HEAD = 4_096;
/** A longer text is no name. */
const MAX_NAME = 256;
const NOTHING = Buffer.alloc(0);

const MODEL_HEAD =
  /^content-disposition:[ \t]*form-data;[ \t]*name=(?:"model"|model[ \t]*$)(?!.*;[ \t]*filename)/im;

/** What the scan reads: the first delimiter, the head of a part, the value of `model`, or another part. */
type Place = 'delimiter' | 'head' | 'model' | 'other';

/** True if a body that starts with this chunk may be multipart/form-data; it is no JSON object. */
export function startsMultipart(chunk: Buffer): boolean {
  return chunk[0] === JSON_BYTES.MINUS;
}

/**
 * Finds the model that a multipart/form-data request names in its part `model` while the body passes, in chunks of any size.
 * It takes the boundary from the first line, stops at the first `model` that is no file, and at once if the body is
 * something else. It keeps the head of one part or the end of a chunk, never a part.
 */
export class MultipartModelScan {
  /** The model; null if it was not found (yet). */
  model: string | null = null;
  /** True if nothing more is read. */
  done = false;

  private place: Place = 'delimiter';
  /** What ends a part: a line break and the delimiter. */
  private delimiter: Buffer = NOTHING;
  /** The text so far; of another part, only what may be the start of the delimiter. */
  private kept: Buffer = NOTHING;

  /** @param chunk read, not kept */
  add(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.done;)
      at = this.place === 'other' ? this.skip(chunk, at) : this.read(chunk, at);
  }

  /** Reads to the end of the text, which is short. */
  private read(chunk: Buffer, from: number): number {
    const [mark, longest] = this.expected();
    const most = longest + mark.length;
    const text = Buffer.concat([this.kept, chunk.subarray(from, from + most)]);
    const end = text.indexOf(mark);
    if (end === -1 || end > longest) {
      this.done = text.length >= most;
      this.kept = text;
      return chunk.length;
    }
    const next = from + end + mark.length - this.kept.length;
    this.kept = NOTHING;
    this.finish(text.toString('utf8', 0, end));
    return next;
  }

  private expected(): readonly [mark: Buffer, longest: number] {
    if (this.place === 'delimiter') return [CRLF, MAX_DELIMITER];
    return this.place === 'head' ? [END_OF_HEAD, MAX_HEAD] : [this.delimiter, CRLF.length + MAX_NAME];
  }

  private finish(text: string): void {
    if (this.place === 'delimiter') {
      this.delimiter = Buffer.from(`\r\n${text}`);
      this.done = !text.startsWith('--');
      this.startHead(CRLF);
    } else if (this.place === 'head') {
      // The last delimiter is followed by two hyphens.
      this.done = text !== '' && !text.startsWith('\r\n');
      this.place = MODEL_HEAD.test(text) ? 'model' : 'other';
      // A part without content ends with the line break of its head.
      this.kept = CRLF;
    } else {
      this.model = text.slice(CRLF.length) || null;
      this.done = true;
    }
  }

  private startHead(kept: Buffer): void {
    this.place = 'head';
    this.kept = kept;
  }

  /** Skips to the next part. Its end may begin in one chunk and end in the next. */
  private skip(chunk: Buffer, from: number): number {
    const { delimiter, kept } = this;
    const overlap = delimiter.length - 1;
    const seam = Buffer.concat([kept, chunk.subarray(from, from + overlap)]);
    const inSeam = seam.indexOf(delimiter);
    const inChunk = inSeam === -1 ? chunk.indexOf(delimiter, from) : -1;
    if (inSeam === -1 && inChunk === -1) {
      const rest = chunk.length - from < overlap ? seam : chunk.subarray(from);
      this.kept = Buffer.from(rest.subarray(Math.max(0, rest.length - overlap)));
      return chunk.length;
    }
    this.startHead(NOTHING);
    return (inChunk === -1 ? from + inSeam - kept.length : inChunk) + delimiter.length;
  }
}

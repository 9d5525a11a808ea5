import { JSON_BYTES } from '../../bytes.js';

const { NEWLINE } = JSON_BYTES;
/** A longer line is passed on in parts. */
const MAX_LINE = 65_536;

/** What becomes of the lines of a stream. */
export interface LineSink {
  /** A line of at most 64 KiB, only valid during the call. */
  onLine(line: Buffer): void;
  /** A part of a longer line, only valid during the call. */
  onPart(part: Buffer): void;
  /** The longer line ends. */
  onPartsEnd(): void;
}

/** Divides a stream into lines, with a native search for their ends. */
export class Lines {
  private held: Buffer[] = [];
  private length = 0;
  private isLong = false;

  constructor(private readonly sink: LineSink) {}

  add(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from);
      if (end === -1) break;
      this.finish(chunk.subarray(from, end));
      from = end + 1;
    }
    if (from < chunk.length) this.hold(chunk.subarray(from));
  }

  /** The stream has ended. */
  end(): void {
    this.finish(NOTHING);
  }

  private hold(part: Buffer): void {
    this.length += part.length;
    if (!this.isLong && this.length <= MAX_LINE) {
      // A view would pin the buffer that it lies in.
      this.held.push(Buffer.from(part));
      return;
    }
    this.release();
    this.sink.onPart(part);
  }

  private release(): void {
    this.isLong = true;
    for (const part of this.held) this.sink.onPart(part);
    this.held = [];
  }

  private finish(last: Buffer): void {
    const { held, isLong, length } = this;
    if (isLong || length + last.length > MAX_LINE) {
      this.release();
      this.sink.onPart(last);
      this.sink.onPartsEnd();
    } else this.sink.onLine(held.length === 0 ? last : Buffer.concat([...held, last]));
    this.held = [];
    this.length = 0;
    this.isLong = false;
  }
}

const NOTHING = Buffer.alloc(0);

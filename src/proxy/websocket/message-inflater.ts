import { constants, createInflateRaw, type InflateRaw } from 'node:zlib';

/** Compressed bytes that may wait for zlib. A provider that sends faster is no longer read. */
const MAX_WAITING = 8 * 1024 * 1024;
/** What a part takes besides its bytes: a message may come in parts of one byte. */
const PART_BYTES = 128;
/** The largest message that is inflated: a response with images has some megabytes. */
const MAX_INFLATED = 32 * 1024 * 1024;
/** Compressed messages end without these bytes (RFC 7692 7.2.2). */
const TAIL = Buffer.from([0x00, 0x00, 0xff, 0xff]);

/** Gets the inflated parts of a message, and its end. */
export interface InflatedSink {
  onInflated(part: Buffer): void;
  onInflatedEnd(): void;
  /** The messages cannot be read any more. */
  onFailed(): void;
}

/**
 * Inflates the messages of one direction of a WebSocket with permessage-deflate (RFC 7692), one after the other in zlib's
 * thread pool. Each message may refer to those before it, so every one is inflated.
 */
export class MessageInflater {
  private readonly messages: Buffer[][] = [];
  private open: Buffer[] = [];
  private stream: InflateRaw | null = null;
  private running = false;
  private failed = false;
  private waiting = 0;
  private inflated = 0;
  private idle: (() => void) | null = null;

  constructor(private readonly sink: InflatedSink) {}

  /** @param part it is copied: a view would keep the chunk that it came in */
  add(part: Buffer): void {
    if (this.failed) return;
    this.waiting += part.length + PART_BYTES;
    if (this.waiting > MAX_WAITING) this.fail();
    else this.open.push(Buffer.from(part));
  }

  end(): void {
    if (this.failed) return;
    this.messages.push(this.open);
    this.open = [];
    if (!this.running) this.next();
  }

  /** Settles when every message that has ended is read. */
  async settled(): Promise<void> {
    if (this.running) await new Promise<void>((resolve) => (this.idle = resolve));
  }

  close(): void {
    this.failed = true;
    this.stream?.destroy();
  }

  private next(): void {
    const message = this.messages.shift();
    this.running = message !== undefined;
    if (message === undefined) {
      this.idle?.();
      return;
    }
    const stream = (this.stream ??= this.openStream());
    this.inflated = 0;
    for (const part of message) stream.write(part);
    stream.write(TAIL);
    stream.flush(constants.Z_SYNC_FLUSH, () => {
      if (this.failed) return;
      for (const part of message) this.waiting -= part.length + PART_BYTES;
      this.sink.onInflatedEnd();
      this.next();
    });
  }

  private openStream(): InflateRaw {
    const stream = createInflateRaw();
    stream.on('data', (part: Buffer) => {
      this.inflated += part.length;
      if (this.failed) return;
      if (this.inflated > MAX_INFLATED) this.fail();
      else this.sink.onInflated(part);
    });
    stream.on('error', () => this.fail());
    // A message may end the compressed stream (RFC 7692 7.2.3.4); the next one starts another.
    stream.on('end', () => (this.stream = null));
    return stream;
  }

  private fail(): void {
    if (this.failed) return;
    this.failed = true;
    this.messages.length = 0;
    this.open = [];
    this.running = false;
    this.stream?.destroy();
    this.sink.onFailed();
    this.idle?.();
  }
}

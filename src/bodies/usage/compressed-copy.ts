import type { ListedCounter } from './listed/listed-counts.js';
import { PlainCopy, type CopiedBody, MAX_WHOLE } from './plain-copy.js';
import type { Decoder } from './content-coding.js';
import { type InflatedResponse, Inflation } from './inflation.js';

/** Inflated in this thread: a usual response takes 5 µs, against 50 to 90 µs through zlib's thread pool (measured). */
const MAX_SYNC = 32_768;
const NOTHING = Buffer.alloc(0);

/**
 * Copies a compressed response. Up to 128 KiB are kept as they are; the inflation of a larger response starts while it is
 * still arriving.
 */
export class CompressedCopy {
  /** Compressed bytes of the response so far, kept or not. */
  length = 0;
  private readonly compressed = new PlainCopy();
  private inflation: Inflation | null = null;

  /** @param overflow see PlainCopy */
  constructor(
    private readonly decoder: Decoder,
    readonly overflow: ListedCounter | null = null,
  ) {}

  add(chunk: Buffer): void {
    this.length += chunk.length;
    if (this.inflation !== null) {
      this.inflation.add(chunk);
    } else if (this.length <= MAX_WHOLE) {
      this.compressed.add(chunk);
    } else {
      const start = Buffer.concat([this.compressed.take().head, chunk]);
      this.inflation = new Inflation(this.decoder, start, this.overflow);
    }
  }

  /** Inflates a small response in this thread. @returns null when inflate() is needed */
  inflateSync(): CopiedBody | null {
    if (this.inflation !== null || this.length > MAX_SYNC) return null;
    const body = this.compressed.take().head;
    try {
      return { head: this.decoder.inflate(body, MAX_WHOLE), tail: NOTHING, whole: true };
    } catch {
      // Too large, or damaged: then only its start can be inflated.
      this.inflation = new Inflation(this.decoder, body, this.overflow);
      return null;
    }
  }

  /** Inflates the response in zlib's thread pool. */
  inflate(): Promise<InflatedResponse> {
    this.inflation ??= new Inflation(this.decoder, this.compressed.take().head, this.overflow);
    return this.inflation.end();
  }

  /** Releases the memory and stops the inflation. */
  discard(): void {
    this.compressed.discard();
    this.inflation?.abort();
  }
}

import type { ListedCounter } from './listed/listed-counts.js';
import type { Transform } from 'node:stream';
import { PlainCopy, type CopiedBody } from './plain-copy.js';
import type { Decoder } from './content-coding.js';

/** Compressed bytes are handed to zlib in blocks: a job of its thread pool costs 50 to 90 µs, however little it is given. */
const BLOCK_BYTES = 65_536;
/** Compressed bytes of one response that may wait for zlib. The inflation of a response that arrives faster is aborted. */
const MAX_WAITING = 33_554_432;
/** The largest response of an embeddings endpoint, 2,048 vectors of 3,072 numbers, has some 70 MB. */
const MAX_INFLATED = 268_435_456;
/** Text and numbers shrink to a fifth, event streams of few bytes per event to a thirtieth; zeros to a thousandth. */
const MAX_RATIO = 100;
const FREE_OF_RATIO = 4_194_304;
/** Memory of one inflation: the copy of 128 KiB, a block, a chunk of output, and what zlib needs itself. */
const OWN_BYTES = 327_680;
/** Memory of all inflations of this process together. */
const MAX_MEMORY = 134_217_728;

let memory = 0;

/** Bytes that the inflations of this process take at the moment. */
export function inflationMemory(): number {
  return memory;
}

/** The inflated parts of a compressed response. */
export interface InflatedResponse {
  readonly kept: CopiedBody;
  /** False if the data was damaged or a limit was exceeded: then only the start of the response is known. */
  readonly complete: boolean;
}

/**
 * Inflates a compressed response in zlib's thread pool, also while it is still arriving, and keeps its start and end
 * like those of an uncompressed response. It aborts at the limits above: memory stays flat, and a response that inflates
 * to a thousand times its size costs some 5 ms of a pool thread. Its stream is closed when the response ends.
 */
export class Inflation {
  private readonly plain: PlainCopy;
  private readonly stream: Transform;
  /** Settles when the stream is closed: everything was inflated, or it was aborted. */
  private readonly closed: Promise<void>;
  /** Bytes that do not fill a block yet. */
  private block: Buffer | null = null;
  private filled = 0;
  private compressedBytes = 0;
  /** The part of `memory` that this inflation takes. */
  private held = 0;
  private complete = false;

  /** @param start the first compressed bytes; they are not copied @param overflow see PlainCopy */
  constructor(
    private readonly decoder: Decoder,
    start: Buffer,
    overflow: ListedCounter | null = null,
  ) {
    this.plain = new PlainCopy(overflow);
    this.stream = decoder.stream(start);
    this.stream.on('data', (chunk: Buffer) => this.keep(chunk));
    this.stream.on('error', () => {
      // It closes by itself; what was inflated so far is kept.
    });
    this.stream.on('end', () => {
      this.complete = true;
      // It does not close by itself where bytes follow the end of the compressed data.
      this.stream.destroy();
    });
    this.closed = new Promise((resolve) => {
      this.stream.on('close', () => {
        this.hold(0);
        resolve();
      });
    });
    this.compressedBytes = start.length;
    this.write(start);
  }

  /** Takes a copy of the next compressed bytes. */
  add(chunk: Buffer): void {
    this.compressedBytes += chunk.length;
    for (let at = 0; at < chunk.length && !this.stream.destroyed;) {
      this.block ??= Buffer.allocUnsafe(BLOCK_BYTES);
      const copied = chunk.copy(this.block, this.filled, at);
      this.filled += copied;
      at += copied;
      if (this.filled === BLOCK_BYTES) this.writeBlock(this.block);
    }
  }

  /** Inflates the rest. */
  async end(): Promise<InflatedResponse> {
    if (this.block !== null) this.writeBlock(this.block);
    if (!this.stream.destroyed) this.stream.end();
    await this.closed;
    return { kept: this.plain.take(), complete: this.complete };
  }

  /** Closes the stream. What was inflated so far is kept. */
  abort(): void {
    this.stream.destroy();
    // At once, or all those that grow in the same tick of the event loop would abort.
    this.hold(0);
  }

  private writeBlock(block: Buffer): void {
    const bytes = block.subarray(0, this.filled);
    this.block = null;
    this.filled = 0;
    this.write(bytes);
  }

  private write(bytes: Buffer): void {
    if (this.stream.destroyed) return;
    this.stream.write(bytes);
    this.account();
  }

  private keep(chunk: Buffer): void {
    this.plain.add(chunk);
    this.account();
  }

  /** Aborts if a limit is exceeded. */
  private account(): void {
    const { stream, decoder, plain } = this;
    if (stream.destroyed) return;
    const waiting = stream.writableLength;
    this.hold(OWN_BYTES + waiting + Math.min(plain.length, decoder.window));
    const isBomb = plain.length > FREE_OF_RATIO && plain.length > MAX_RATIO * this.compressedBytes;
    if (isBomb || plain.length > MAX_INFLATED || waiting > MAX_WAITING || memory > MAX_MEMORY) this.abort();
  }

  private hold(bytes: number): void {
    memory += bytes - this.held;
    this.held = bytes;
  }
}

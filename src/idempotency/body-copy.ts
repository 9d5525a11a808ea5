import type { FairShares, Owner } from './fair-shares.js';

/** A larger response is not stored; the client then slows the provider down again. */
export const MAX_STORED_BYTES = 8 * 1024 * 1024;
/** Of a body whose length is not known. */
const FIRST_GROWTH = 4_096;
const NOTHING = Buffer.alloc(0);

/** A copy of one response body. */
export class BodyCopy {
  /** Buffer for the body, of which `length` bytes are used. */
  private copy: Buffer = NOTHING;
  private length = 0;
  /** Memory reserved: for the copy, and for the chunks of it that the response writer holds for a slow client. */
  private reserved = 0;

  constructor(
    private readonly memory: FairShares,
    private readonly owner: Owner,
  ) {}

  /** @returns why the body cannot be copied; null if it can */
  add(chunk: Buffer): 'too_large' | 'memory' | null {
    const length = this.length + chunk.length;
    const problem = length > this.copy.length ? this.grow(Math.max(length, FIRST_GROWTH)) : null;
    if (problem !== null) return problem;
    this.copy.set(chunk, this.length);
    this.length = length;
    return null;
  }

  /** Reserves memory for a body of this many bytes. @returns why it cannot be copied; null if it can */
  grow(bytes: number): 'too_large' | 'memory' | null {
    if (bytes > MAX_STORED_BYTES) return 'too_large';
    const size = Math.min(Math.max(bytes, 2 * this.copy.length), MAX_STORED_BYTES);
    if (!this.memory.reserve(this.owner, size - this.reserved)) return 'memory';
    this.reserved = size;
    // From Node's pool if it is small: memory of its own would take more time than the copy.
    const grown = Buffer.allocUnsafe(size);
    grown.set(this.copy.subarray(0, this.length));
    this.copy = grown;
    return null;
  }

  get bytes(): Buffer {
    return this.copy.subarray(0, this.length);
  }

  /** Drops the copy. Its memory stays reserved until `free`. */
  drop(): void {
    this.copy = NOTHING;
    this.length = 0;
  }

  free(): void {
    this.memory.free(this.owner, this.reserved);
    this.reserved = 0;
  }
}

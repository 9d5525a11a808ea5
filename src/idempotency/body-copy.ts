/** A larger response is not stored; the client then slows the provider down again. */
export const LARGEST_STORED_BYTES = 8 * 1024 * 1024;
const FIRST_GROWTH = 4_096;
const NOTHING = Buffer.alloc(0);

/** Memory of this process for copies of responses. */
export interface CopyMemory {
  /** @returns false when there is none */
  reserve(bytes: number): boolean;
  free(bytes: number): void;
}

/** A copy of one response body. */
export class BodyCopy {
  /** Buffer for the body, of which `length` bytes are used. */
  private copy: Buffer = NOTHING;
  private length = 0;
  /** Memory reserved: for the copy, and for the chunks of it that the response writer holds for a slow client. */
  private reserved = 0;

  constructor(private readonly memory: CopyMemory) {}

  /** @returns false when the body is too large or there is no memory for it */
  add(chunk: Buffer): boolean {
    const length = this.length + chunk.length;
    if (length > LARGEST_STORED_BYTES || (length > this.copy.length && !this.grow(length))) return false;
    this.copy.set(chunk, this.length);
    this.length = length;
    return true;
  }

  /** @returns false when there is no memory for this many bytes */
  grow(bytes: number): boolean {
    const size = Math.min(Math.max(bytes, 2 * this.copy.length, FIRST_GROWTH), LARGEST_STORED_BYTES);
    if (!this.memory.reserve(size - this.reserved)) return false;
    this.reserved = size;
    const grown = Buffer.allocUnsafeSlow(size);
    grown.set(this.copy.subarray(0, this.length));
    this.copy = grown;
    return true;
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
    this.memory.free(this.reserved);
    this.reserved = 0;
  }
}

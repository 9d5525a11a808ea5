const MAX_BYTES = 65_536;

/** A response of an attempt that was retried, in case no later attempt has one: its first 64 KiB. */
export class KeptResponse {
  /** It was received to its end, and all of it is kept. */
  isWhole = false;
  private readonly chunks: Buffer[] = [];
  private length = 0;

  /**
   * @param headers flat raw headers, as the client gets them
   * @param expectedBytes of its body; null if the provider sent no length
   */
  constructor(
    readonly status: number,
    readonly reason: string,
    readonly headers: string[],
    readonly expectedBytes: number | null,
  ) {}

  /** @returns false if no more is kept */
  add(chunk: Buffer): boolean {
    const kept = chunk.subarray(0, MAX_BYTES - this.length);
    // undici reuses the memory of its chunks.
    this.chunks.push(Buffer.from(kept));
    this.length += kept.length;
    return kept.length === chunk.length;
  }

  get body(): Buffer {
    return this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
  }
}

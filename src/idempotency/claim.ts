import { createHash } from 'node:crypto';
import type { Holder } from './idempotency-records.js';
import { isKept, keptHeaders, type StoredAnswer } from './stored-response.js';

/** Answers above this are not kept, and the client's pace is the provider's again. */
export const LARGEST_KEPT_BYTES = 8 * 1024 * 1024;
const FIRST_GROWTH = 4_096;
const NOTHING = Buffer.alloc(0);

/** Who ends claims, and has the memory for their answers. Its promises never reject. */
export interface ClaimKeeper {
  /** Takes memory for an answer. @returns false when there is none */
  reserve(bytes: number): boolean;
  giveBack(bytes: number): void;
  /** Keeps an answer for repeats. @returns null when it cannot be kept */
  store(claim: Claim, answer: StoredAnswer): Promise<void> | null;
  /** Lets repeats run the call. */
  release(claim: Claim): Promise<void>;
  /** Tells repeats that nobody knows what became of the call. */
  abandon(claim: Claim): Promise<void>;
}

/** The right to run one call, and what is kept of its answer meanwhile. Ends once: stored, released or abandoned. */
export class Claim implements Holder {
  private readonly hash = createHash('sha256');
  private requestWhole = false;
  private head: Pick<StoredAnswer, 'status' | 'reason' | 'headers'> | null = null;
  /** Room for the answer, of which `length` bytes are taken. */
  private copy: Buffer = NOTHING;
  private length = 0;
  /** Memory taken, for the copy and for what a client that takes its time makes the answer's writer hold of the same. */
  private reserved = 0;
  private ended = false;
  private storing: Promise<void> | null = null;
  private releasing: Promise<void> | null = null;

  constructor(
    readonly id: Buffer,
    readonly keyId: string,
    readonly callId: string,
    private readonly keeper: ClaimKeeper,
  ) {}

  /** A piece of the request's body passes by. */
  requested(chunk: Buffer): void {
    this.hash.update(chunk);
  }

  /** The request's body has arrived to its end. */
  requestArrived(): void {
    this.requestWhole = true;
  }

  /** True while the call goes on to its end whatever its client does, so that a repeat finds the answer. */
  get outlivesClient(): boolean {
    return this.requestWhole && !this.ended;
  }

  /**
   * @param headers those the client gets @param announced bytes of body, or null
   * @returns false when this answer would be kept, were it not too large
   */
  answered(status: number, reason: string, headers: readonly string[], announced: number | null): boolean {
    const fits = announced === null || announced <= LARGEST_KEPT_BYTES;
    this.head = { status, reason, headers: keptHeaders(headers) };
    if (!isKept(status)) void this.release();
    else if (!fits || (announced !== null && !this.grow(announced))) void this.release();
    return fits || !isKept(status);
  }

  /** A piece of the answer's body; a view that is not kept. */
  add(chunk: Buffer): void {
    if (this.ended) return;
    const length = this.length + chunk.length;
    if (length > LARGEST_KEPT_BYTES || (length > this.copy.length && !this.grow(length))) {
      void this.release();
      return;
    }
    this.copy.set(chunk, this.length);
    this.length = length;
  }

  /** The answer is there to its end. */
  complete(): void {
    if (this.ended) return;
    if (!this.requestWhole || this.head === null) {
      void this.release();
      return;
    }
    const body = this.copy.subarray(0, this.length);
    this.storing = this.keeper.store(this, { ...this.head, fingerprint: this.hash.digest(), body });
    if (this.storing === null) void this.release();
    else this.end();
  }

  /** Nothing is kept: a repeat may run the call. Settles, always, once it may. */
  private async release(): Promise<void> {
    if (!this.ended) {
      this.end();
      this.releasing = this.keeper.release(this).finally(() => (this.releasing = null));
    }
    await this.releasing;
  }

  /** What the end of the answer waits for, so that a client that comes again at once is not told of a running call. */
  get beingReleased(): Promise<void> | null {
    return this.releasing;
  }

  /**
   * The call is over; what has not been kept by now is not.
   *
   * @param interrupted this process gave the call up: nobody will know what became of it, and repeats are told so,
   * unless the provider never had the whole request
   */
  async close(interrupted: boolean): Promise<void> {
    if (!interrupted || !this.requestWhole) await this.release();
    else if (!this.ended) {
      this.end();
      await this.keeper.abandon(this);
    }
    // Not awaited: Postgres may be away for long.
    void (this.storing ?? Promise.resolve()).then(() => {
      this.keeper.giveBack(this.reserved);
      this.reserved = 0;
    });
  }

  /** @returns false when there is no memory for more */
  private grow(bytes: number): boolean {
    const room = Math.min(Math.max(bytes, 2 * this.copy.length, FIRST_GROWTH), LARGEST_KEPT_BYTES);
    if (!this.keeper.reserve(room - this.reserved)) return false;
    this.reserved = room;
    const grown = Buffer.allocUnsafeSlow(room);
    grown.set(this.copy.subarray(0, this.length));
    this.copy = grown;
    return true;
  }

  private end(): void {
    this.ended = true;
    this.copy = NOTHING;
  }
}

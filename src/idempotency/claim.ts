import { createHash } from 'node:crypto';
import type { Holder } from './idempotency-records.js';
import { BodyCopy, LARGEST_STORED_BYTES } from './body-copy.js';
import type { ClaimStore } from './claim-store.service.js';
import type { ResponseRecorder } from './response-recorder.js';
import { isStorable, storedHeaders, type StoredResponse } from './stored-response.js';

/** The right to run one call, and the copy of its response. Ends once: stored, released or abandoned. */
export class Claim implements Holder, ResponseRecorder {
  private readonly hash = createHash('sha256');
  private requestComplete = false;
  private head: Pick<StoredResponse, 'status' | 'reason' | 'headers'> | null = null;
  private readonly copy: BodyCopy;
  private ended = false;
  private storing: Promise<void> | null = null;
  private releasing: Promise<void> | null = null;

  constructor(
    readonly id: Buffer,
    readonly keyId: string,
    readonly callId: string,
    private readonly store: ClaimStore,
  ) {
    this.copy = new BodyCopy(store);
  }

  /** Adds a chunk of the request body to the fingerprint. */
  requested(chunk: Buffer): void {
    this.hash.update(chunk);
  }

  /** Call when the whole request body was received. */
  requestArrived(): void {
    this.requestComplete = true;
  }

  /** True while the call goes on even if its client disconnects, so that a retry can get the response. */
  get outlivesClient(): boolean {
    return this.requestComplete && !this.ended;
  }

  /**
   * Notes the response head.
   *
   * @param headers those the client gets @param declared bytes of body, or null
   * @returns false when this response could be stored if it were not too large
   */
  responded(status: number, reason: string, headers: readonly string[], declared: number | null): boolean {
    const fits = declared === null || declared <= LARGEST_STORED_BYTES;
    this.head = { status, reason, headers: storedHeaders(headers) };
    if (!isStorable(status)) void this.release();
    else if (!fits || (declared !== null && !this.copy.grow(declared))) void this.release();
    return fits || !isStorable(status);
  }

  /** Copies a chunk of the response body. */
  add(chunk: Buffer): void {
    if (!this.ended && !this.copy.add(chunk)) void this.release();
  }

  /** Stores the response, which was received to its end. */
  complete(): void {
    if (this.ended) return;
    if (!this.requestComplete || this.head === null) {
      void this.release();
      return;
    }
    const body = this.copy.bytes;
    this.storing = this.store.store(this, this.keyId, {
      ...this.head,
      fingerprint: this.hash.digest(),
      body,
    });
    if (this.storing === null) void this.release();
    else this.end();
  }

  /** Stores nothing. Always settles, once a duplicate request may run the call. */
  private async release(): Promise<void> {
    if (!this.ended) {
      this.end();
      this.releasing = this.store.release(this).finally(() => (this.releasing = null));
    }
    await this.releasing;
  }

  /** Awaited before the end of the response, so that an immediate retry does not get idempotency_in_progress. */
  get beingReleased(): Promise<void> | null {
    return this.releasing;
  }

  /**
   * Ends the claim. A response that was not stored by now is not stored.
   *
   * @param interrupted this process aborted the call: its outcome stays unknown, unless the provider never received the
   * whole request
   */
  async close(interrupted: boolean): Promise<void> {
    if (!interrupted || !this.requestComplete) await this.release();
    else if (!this.ended) {
      this.end();
      await this.store.abandon(this);
    }
    // Not awaited: Postgres may be unavailable for long.
    void (this.storing ?? Promise.resolve()).then(() => this.copy.free());
  }

  private end(): void {
    this.ended = true;
    this.copy.drop();
  }
}

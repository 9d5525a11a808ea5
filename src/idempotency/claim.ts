import { createHash } from 'node:crypto';
import type { Holder } from './idempotency-records.js';
import type { Owner } from './fair-shares.js';
import { BodyCopy } from './body-copy.js';
import type { ClaimStore } from './claim-store.service.js';
import type { ResponseRecorder } from './response-recorder.js';
import type { StoreFailure } from './store-failures.service.js';
import { isStorable, storedHeaders, type StoredResponse } from './stored-response.js';

const NOT_STORED = ['idempotency-stored', 'false'] as const;

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
    readonly owner: Owner,
    readonly callId: string,
    private readonly store: ClaimStore,
  ) {
    this.copy = new BodyCopy(store.memory, owner);
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
   * @returns headers for a response that is not stored because of its size, or because there is no room for it
   */
  responded(
    status: number,
    reason: string,
    headers: readonly string[],
    declared: number | null,
  ): readonly string[] | null {
    this.head = { status, reason, headers: storedHeaders(headers) };
    if (!isStorable(status)) {
      void this.release();
      return null;
    }
    if (this.ended) return null;
    const hasStorage = this.store.hasStorage(this.owner, declared ?? 0);
    const problem = declared === null ? null : this.copy.grow(declared);
    if (problem === null && hasStorage) return null;
    this.dismiss(problem ?? 'storage');
    return NOT_STORED;
  }

  /** Copies a chunk of the response body. */
  add(chunk: Buffer): void {
    if (this.ended) return;
    const problem = this.copy.add(chunk);
    if (problem !== null) this.dismiss(problem);
  }

  /** Stores the response, which was received to its end. */
  complete(): void {
    if (this.ended) return;
    if (!this.requestComplete || this.head === null) {
      void this.release();
      return;
    }
    const body = this.copy.bytes;
    this.storing = this.store.store(this, this.owner, {
      ...this.head,
      fingerprint: this.hash.digest(),
      body,
    });
    if (this.storing === null) void this.release();
    else this.end();
  }

  private dismiss(problem: StoreFailure): void {
    this.store.failures.add('idempotency', problem, this.owner);
    void this.release();
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

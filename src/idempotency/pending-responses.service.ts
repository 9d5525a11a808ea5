import { Injectable, Logger } from '@nestjs/common';
import { ChangeFeed } from '../database/change-feed.js';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { ResponseCipher } from './response-cipher.js';
import { ENDED_CHANNEL, IdempotencyRecords, LEASE_MS, type RecordState } from './idempotency-records.js';
import type { StoredResponse } from './stored-response.js';

/** How long a duplicate request waits for the call that runs. */
const WAIT_MS = 60_000;
/** Notifications may be lost, and some poolers never deliver them. */
const POLL_MS = 1_000;
/** Leases that expired while Postgres was unavailable are renewed within a third of a lease once it is back. */
const LAPSE_GRACE_MS = LEASE_MS / 2;

/** All calls of this process that wait for one record. */
interface Wait {
  readonly id: Buffer;
  readonly response: Promise<StoredResponse>;
  resolve: (response: StoredResponse) => void;
  reject: (error: GatewayError) => void;
  callers: number;
  /** When its lease was first seen to have run out (monotonic ms); null: it has not. */
  lapsedAt: number | null;
}

/** Returns the response of a call to its duplicate requests, as soon as it is stored. They never run the call. */
@Injectable()
export class PendingResponses {
  private readonly logger = new Logger('Idempotency');
  private readonly waits = new Map<string, Wait>();
  private polling = false;
  /** A poll was requested while one was running. */
  private again = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly cipher: ResponseCipher,
    feed: ChangeFeed,
  ) {
    feed.listen(ENDED_CHANNEL, (id) => {
      if (this.waits.has(id)) void this.poll();
    });
  }

  /** Duplicate requests that wait for a response. */
  get waiting(): number {
    let callers = 0;
    for (const wait of this.waits.values()) callers += wait.callers;
    return callers;
  }

  /**
   * Waits for the response of a call.
   *
   * @param id of a record that another call has claimed
   * @param gone aborted when the client disconnects
   * @throws GatewayError idempotency_in_progress, idempotency_outcome_unknown, database_unavailable
   */
  async waitFor(id: Buffer, gone: AbortSignal): Promise<StoredResponse> {
    const name = id.toString('hex');
    const wait = this.waits.get(name) ?? this.begin(id, name);
    wait.callers++;
    let stop!: () => void;
    const timeout = new Promise<never>((_, reject) => {
      stop = () => reject(new GatewayError('idempotency_in_progress'));
    });
    const timer = setTimeout(stop, WAIT_MS);
    gone.addEventListener('abort', stop);
    try {
      return await Promise.race([wait.response, timeout]);
    } finally {
      clearTimeout(timer);
      gone.removeEventListener('abort', stop);
      if (--wait.callers === 0) this.forget(name, wait);
    }
  }

  /**
   * Whether `waitFor` will return a response: the call has ended, or runs.
   *
   * @throws GatewayError database_unavailable
   */
  async has(id: Buffer): Promise<boolean> {
    try {
      const [state] = await this.records.states([id]);
      return state !== undefined && (state.stored || !state.lapsed);
    } catch (error) {
      throw unavailable(error);
    }
  }

  private begin(id: Buffer, name: string): Wait {
    let resolve!: Wait['resolve'];
    let reject!: Wait['reject'];
    const response = new Promise<StoredResponse>((...settle) => ([resolve, reject] = settle));
    response.catch(() => {});
    const wait: Wait = { id, response, resolve, reject, callers: 0, lapsedAt: null };
    this.waits.set(name, wait);
    void this.poll();
    return wait;
  }

  /** Reads the states of all awaited records: at once, and then at intervals. */
  private async poll(): Promise<void> {
    if (this.polling) {
      this.again = true;
      return;
    }
    this.polling = true;
    clearTimeout(this.timer);
    do {
      this.again = false;
      await this.pollOnce([...this.waits.values()]);
    } while (this.again);
    this.polling = false;
    if (this.waits.size > 0) this.timer = setTimeout(() => void this.poll(), POLL_MS);
  }

  private async pollOnce(waits: Wait[]): Promise<void> {
    if (waits.length === 0) return;
    const askedAt = performance.now();
    try {
      const states = await this.records.states(waits.map(({ id }) => id));
      const byName = new Map(states.map((state) => [state.id.toString('hex'), state]));
      for (const wait of waits) {
        const name = wait.id.toString('hex');
        const state = byName.get(name);
        if (state !== undefined && !state.stored && !isLost(wait, state, askedAt)) continue;
        this.forget(name, wait);
        if (state === undefined) wait.reject(new GatewayError('idempotency_in_progress'));
        else if (!state.stored) wait.reject(new GatewayError('idempotency_outcome_unknown'));
        else void this.read(wait);
      }
    } catch (error) {
      this.rejectAll(waits, error);
    }
  }

  private async read(wait: Wait): Promise<void> {
    try {
      const record = await this.records.read(wait.id);
      // Expired and swept just now.
      if (record === null) throw new GatewayError('idempotency_in_progress');
      wait.resolve(this.cipher.open({ id: wait.id, callId: record.callId }, record.response));
    } catch (error) {
      if (error instanceof GatewayError) wait.reject(error);
      else if (error instanceof SecretBoxError) {
        this.logger.error(
          `The stored response of a duplicate request could not be decrypted: ${error.message}`,
        );
        wait.reject(new GatewayError('idempotency_outcome_unknown'));
      } else this.rejectAll([wait], error);
    }
  }

  private rejectAll(waits: Wait[], error: unknown): void {
    this.logger.warn(`Stored responses could not be read: ${describeError(error)}`);
    for (const wait of waits) {
      this.forget(wait.id.toString('hex'), wait);
      wait.reject(unavailable(error));
    }
  }

  /** A later duplicate request starts a new wait. */
  private forget(name: string, wait: Wait): void {
    if (this.waits.get(name) === wait) this.waits.delete(name);
  }
}

/** Whether the outcome of the awaited call will stay unknown. */
function isLost(wait: Wait, { lapsed, abandoned }: RecordState, askedAt: number): boolean {
  wait.lapsedAt = lapsed ? (wait.lapsedAt ?? performance.now()) : null;
  return abandoned || (wait.lapsedAt !== null && askedAt - wait.lapsedAt >= LAPSE_GRACE_MS);
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError('database_unavailable', {
    message: 'The Idempotency-Key cannot be checked right now.',
    cause,
  });
}

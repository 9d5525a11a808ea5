import { Injectable, Logger } from '@nestjs/common';
import { ChangeFollower } from '../database/change-follower.js';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { AnswerBox } from './response-cipher.js';
import { ENDED_CHANNEL, IdempotencyRecords, LEASE_MS, type RecordState } from './idempotency-records.js';
import type { StoredAnswer } from './stored-response.js';

/** How long a call waits for the one that runs. */
const WAIT_MS = 60_000;
/** Notifications may be lost, and through some poolers never come. */
const POLL_MS = 1_000;
/** Leases that ran out while Postgres was away are renewed within a third of one once it is back. */
const PATIENCE_MS = LEASE_MS / 2;

/** All calls of this process that wait for one record. */
interface Wait {
  readonly id: Buffer;
  readonly answer: Promise<StoredAnswer>;
  resolve: (answer: StoredAnswer) => void;
  reject: (refusal: GatewayError) => void;
  callers: number;
  /** When its lease was first seen to have run out (monotonic ms); null: it has not. */
  lapsedAt: number | null;
}

/** Gives repeats of a call the answer of the first, now or once it is there. They never run the call. */
@Injectable()
export class AwaitedAnswers {
  private readonly logger = new Logger('Idempotency');
  private readonly waits = new Map<string, Wait>();
  private polling = false;
  /** Somebody asked for a look while one was under way. */
  private again = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly box: AnswerBox,
    follower: ChangeFollower,
  ) {
    follower.hear(ENDED_CHANNEL, (id) => {
      if (this.waits.has(id)) void this.look();
    });
  }

  /** Calls that wait for the answer of another one. */
  get waiting(): number {
    let callers = 0;
    for (const wait of this.waits.values()) callers += wait.callers;
    return callers;
  }

  /**
   * @param id of a record that another call has claimed
   * @param gone aborted when the caller waits no longer
   * @throws GatewayError idempotency_in_progress, idempotency_outcome_unknown, database_unavailable
   */
  async answer(id: Buffer, gone: AbortSignal): Promise<StoredAnswer> {
    const name = id.toString('hex');
    const wait = this.waits.get(name) ?? this.begin(id, name);
    wait.callers++;
    let stop!: () => void;
    const enough = new Promise<never>((_, reject) => {
      stop = () => reject(new GatewayError('idempotency_in_progress'));
    });
    const timer = setTimeout(stop, WAIT_MS);
    gone.addEventListener('abort', stop);
    try {
      return await Promise.race([wait.answer, enough]);
    } finally {
      clearTimeout(timer);
      gone.removeEventListener('abort', stop);
      if (--wait.callers === 0) this.forget(name, wait);
    }
  }

  private begin(id: Buffer, name: string): Wait {
    let resolve!: Wait['resolve'];
    let reject!: Wait['reject'];
    const answer = new Promise<StoredAnswer>((...settle) => ([resolve, reject] = settle));
    answer.catch(() => {});
    const wait: Wait = { id, answer, resolve, reject, callers: 0, lapsedAt: null };
    this.waits.set(name, wait);
    void this.look();
    return wait;
  }

  /** Looks at all records that are waited for: at once, and from then on at intervals. */
  private async look(): Promise<void> {
    if (this.polling) {
      this.again = true;
      return;
    }
    this.polling = true;
    clearTimeout(this.timer);
    do {
      this.again = false;
      await this.lookOnce([...this.waits.values()]);
    } while (this.again);
    this.polling = false;
    if (this.waits.size > 0) this.timer = setTimeout(() => void this.look(), POLL_MS);
  }

  private async lookOnce(waits: Wait[]): Promise<void> {
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
      this.refuse(waits, error);
    }
  }

  private async read(wait: Wait): Promise<void> {
    try {
      const record = await this.records.read(wait.id);
      // Expired, and gone, in this very moment.
      if (record === null) throw new GatewayError('idempotency_in_progress');
      wait.resolve(this.box.open({ id: wait.id, callId: record.callId }, record.answer));
    } catch (error) {
      if (error instanceof GatewayError) wait.reject(error);
      else if (error instanceof SecretBoxError) {
        this.logger.error(`The answer kept for a repeated call cannot be opened: ${error.message}`);
        wait.reject(new GatewayError('idempotency_outcome_unknown'));
      } else this.refuse([wait], error);
    }
  }

  private refuse(waits: Wait[], error: unknown): void {
    this.logger.warn(`Repeated calls could not be answered: ${describeError(error)}`);
    for (const wait of waits) {
      this.forget(wait.id.toString('hex'), wait);
      wait.reject(
        new GatewayError('database_unavailable', {
          message: 'The Idempotency-Key cannot be checked right now.',
        }),
      );
    }
  }

  /** Who comes from here on begins a wait of his own. */
  private forget(name: string, wait: Wait): void {
    if (this.waits.get(name) === wait) this.waits.delete(name);
  }
}

/** Whether the call that is waited for will never come to an end that is known. */
function isLost(wait: Wait, { lapsed, abandoned }: RecordState, askedAt: number): boolean {
  wait.lapsedAt = lapsed ? (wait.lapsedAt ?? performance.now()) : null;
  return abandoned || (wait.lapsedAt !== null && askedAt - wait.lapsedAt >= PATIENCE_MS);
}

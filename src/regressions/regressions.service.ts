import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { ChangeFeed, type CheckResult } from '../database/change-feed.js';
import { Recovery, type Current } from './recovery.js';
import { describeError } from '../errors/describe-error.js';
import { withTimeout } from '../platform/patience.js';
import { Cursors } from './cursors.js';
import type { RegressionState } from './database-regression.entity.js';
import { compareRuns, type Comparison, knownFrom, type KnownRun, split, without } from './known-runs.js';
import { lostRuns, lostTime } from './loss.js';
import { OldRuns } from './old-runs.js';
import type { Phase, Regression, RegressionHandler } from './regression.js';
import * as store from './regression-store.js';
import { RollCall } from './roll-call.js';
import { RunCounter } from './run-counter.js';

const POLL_MS = 2_000;
/** Until all processes have responded. */
const ROLL_CALL_MS = 250;
/** Whoever waits for the roll call waits no longer: that itself takes 30 s at most. */
const ADMIT_MS = 35_000;

/**
 * Notices that Postgres has lost transactions that it had acknowledged, as an asynchronous standby has that is promoted, and
 * lets modules put back what they know.
 *
 * Each batch of rows and each poll of the change feed counts `seq` in the row that this process has in `gateway_run`. A seq
 * in Postgres that is lower than the acknowledged one shows a loss: of this process, or of another one as it was polled last.
 * Then, and whenever the server is new (its start, `pg_postmaster_start_time()`, differs from that of the last poll):
 *
 * 1. `refuse` of all handlers, in memory, before any cache is compared;
 * 2. every cache of the change feed is compared again;
 * 3. `putBack` of the handlers: phase `ends`, then `rows` (once Postgres's clock is past the cursors of the log), then
 *    `claims`. It is repeated until it succeeds. Meanwhile the seq of this process stays at what has survived;
 * 4. this process answers the roll call. Claims and exchanges of limits wait for it: see `admitted`.
 *
 * Handlers of `onRegression` are for losses, those of `onNewServer` for a new server on which no loss was noticed. Register
 * them in a constructor. The same handler may be both.
 *
 * A lost time above JOURNAL_KEEP_MS is that of a restored backup: its `state` is `waiting`, `refuse` stays in force, and
 * `putBack` runs when an administrator has asked for it. `isWaiting` says so, also in a process that has started since.
 */
@Injectable()
export class Regressions implements OnApplicationShutdown {
  readonly cursors = new Cursors();
  private readonly logger = new Logger('Database');
  private readonly rollCall = new RollCall();
  private readonly recovery: Recovery;
  /** Runs as they were in Postgres at the last poll or when they had ended, without this one. */
  private known = new Map<string, KnownRun>();
  /** The own row as it is in Postgres at least; null: there is none yet. */
  private own: KnownRun | null = null;
  /** The regression that is noted for this server. */
  private noted: Pick<store.Noted, 'id' | 'number' | 'state'> | null = null;
  /** This process has put back everything, or nothing is to be put back. */
  private hasAnswered = false;
  /** Postgres rejects the own row. */
  private isUncounted = false;
  /** Somebody saw another server than the last poll. */
  private isDoubted = false;
  private waiters: (() => void)[] = [];
  private readonly oldRuns = new OldRuns();
  private stopped = false;

  constructor(
    private readonly counter: RunCounter,
    private readonly feed: ChangeFeed,
    @InjectSettings() private readonly env: Settings,
  ) {
    this.recovery = new Recovery(directUrl(env), this.cursors, (current, client) =>
      this.answer(current, client),
    );
    counter.onDoubt = () => this.doubt();
    feed.checkFirst(
      (client) => this.check(client),
      (client) => this.end(client),
    );
  }

  /** UUID of this process run. */
  get run(): string {
    return this.counter.run;
  }

  /** The Postgres server that this process has compared itself with; null: none yet. */
  get server(): string | null {
    return this.counter.server;
  }

  /** The last seq of this run that Postgres has acknowledged. */
  get acknowledged(): bigint {
    return this.counter.acknowledged;
  }

  /** An administrator is to decide whether anything is put back: nothing is by itself, also not at a start. */
  get isWaiting(): boolean {
    return this.noted?.state === 'waiting' || this.noted?.state === 'another_database';
  }

  /** What is wrong, for operators and the readiness check. */
  get reasons(): string[] {
    const { problem } = this.recovery;
    const reasons = problem === null ? [] : [problem];
    if (this.noted?.state === 'waiting')
      reasons.push('Postgres has lost more than the journals keep; decide what is put back');
    if (this.noted?.state === 'another_database') reasons.push('Postgres is another database than before');
    return reasons;
  }

  /** Registers what is put back after a loss. @param phase handlers of one phase run in the order of their registration */
  onRegression(phase: Phase, handler: RegressionHandler): void {
    this.recovery.handlers.push([phase, handler]);
  }

  /** Registers what is done when Postgres is a new server and no loss was noticed: it may still have lost some changes. */
  onNewServer(handler: RegressionHandler): void {
    this.recovery.serverHandlers.push(['ends', handler]);
  }

  /** Whether `admitted` resolves at once. */
  get isAdmitting(): boolean {
    return this.rollCall.isComplete && this.hasAnswered && !this.isDoubted;
  }

  /**
   * Waits until all processes have put back what the current server had lost, 30 s at most. What may only be granted then is
   * granted by a statement that does nothing on another server.
   *
   * @returns the server, as `isSameServer` compares it
   * @throws Error if Postgres does not respond meanwhile
   */
  async admitted(): Promise<string> {
    if (!this.isAdmitting) {
      let done: () => void = () => {};
      const settled = new Promise<void>((resolve) => this.waiters.push((done = resolve)));
      const inTime = await withTimeout(ADMIT_MS, settled);
      this.waiters = this.waiters.filter((waiter) => waiter !== done);
      if (!inTime || this.stopped) throw new Error('this process has not been compared with Postgres yet');
    }
    return this.counter.server!;
  }

  /** Call when a statement has found another server: the next poll compares it on a new connection. */
  doubt(): void {
    if (this.isDoubted) return;
    this.isDoubted = true;
    this.feed.poll(true);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.admitAll();
    await this.recovery.end();
  }

  /** At the beginning of each poll of the change feed. @throws Error if caches must not be verified */
  private async check(client: pg.ClientBase): Promise<CheckResult> {
    const expected = this.expected();
    await this.count(client);
    const [found, compared] = await this.read(client, expected);
    const isNew = found.server !== this.counter.server;
    const comparison = compareRuns(compared, found.runs, found.now);
    const hasLost = comparison.lost.size > 0 || !comparison.isSame || this.counter.lowest !== null;
    if (found.isReadOnly) {
      if (hasLost) throw new Error('Postgres is read-only, and behind what it had acknowledged');
      if (isNew) return { compareAll: false, againMs: POLL_MS };
    }
    let compareAll = false;
    if (this.counter.server === null) await this.begin(client, found);
    else if (isNew || hasLost) {
      await this.meet(client, found, comparison);
      compareAll = true;
    } else {
      // It was removed while this process slept, or could not be made.
      if (!found.runs.has(this.run)) await this.beginRow(client, found);
      compareAll = await this.follow(found);
    }
    this.remember(found, compared === expected);
    await this.callRoll(client, found);
    if (!found.isReadOnly) await this.oldRuns.sweep(client);
    this.isDoubted = false;
    if (this.isAdmitting) this.admitAll();
    return { compareAll, againMs: this.rollCall.isComplete ? POLL_MS : ROLL_CALL_MS };
  }

  /**
   * @returns what is in Postgres, and which runs are to be compared with it: those that have ended in doubt only. A process that
   *   has just started learns them all: Postgres may still lose what they wrote, of which this disk may have files.
   */
  private async read(
    client: pg.ClientBase,
    known: ReadonlyMap<string, KnownRun>,
  ): Promise<[store.Found, ReadonlyMap<string, KnownRun>]> {
    const found = await store.readRuns(client, [this.run]);
    const running = new Map([...known].filter(([run, row]) => row.server !== null || run === this.run));
    const isClear = compareRuns(running, found.runs, found.now).lost.size === 0;
    if (isClear && found.server === this.counter.server) return [found, running];
    const isFirst = this.counter.server === null;
    return [await store.readRuns(client, isFirst ? null : [this.run, ...known.keys()]), known];
  }

  /** What must be in Postgres at least. */
  private expected(): Map<string, KnownRun> {
    const expected = new Map(this.known);
    const { acknowledged, isCounting, hasUncounted, lowest } = this.counter;
    if (this.own === null) return expected;
    const counted = isCounting ? acknowledged : this.own.seq;
    if (counted > 0n || hasUncounted || lowest !== null)
      expected.set(this.run, { ...this.own, seq: counted });
    return expected;
  }

  private async count(client: pg.ClientBase): Promise<void> {
    const { server, isCounting, acknowledged } = this.counter;
    if (server === null || !this.hasAnswered) return;
    try {
      const result = await store.countRun(client, this.run, server, isCounting);
      if (result === null || !isCounting) return;
      const stamp = { server, isCounted: true, known: acknowledged };
      this.counter.acknowledge(stamp, { ...result, same: true });
    } catch (error) {
      // Read-only, or its disk is full: what is there can still be compared.
      if (!isOfPostgres(error)) throw error;
      this.logger.debug(`This process is not counted in Postgres: ${describeError(error)}`);
    }
  }

  /** The first server. */
  private async begin(client: pg.ClientBase, found: store.Found): Promise<void> {
    const { server } = found;
    await this.beginRow(client, found);
    this.counter.server = server;
    this.counter.isCounting = true;
    this.hasAnswered = true;
    this.noted = found.regression;
    this.rollCall.begin(server, [], found.runs.values());
    // What runs that have ended have left on this disk may wait for the decision.
    if (found.regression?.state === 'waiting')
      this.recovery.current = await this.recovery.prepare(
        found.regression,
        factsOf(found.regression, server),
        false,
      );
  }

  /** A Postgres whose disk is full still serves keys: the next poll tries again, and nothing is expected until then. */
  private async beginRow(client: pg.ClientBase, { server, now }: store.Found): Promise<void> {
    const { counter } = this;
    // Above what was written while there was no row.
    const seq = counter.acknowledged + (counter.hasUncounted ? 1n : 0n);
    this.own = null;
    try {
      await store.beginRun(client, { run: this.run, seq, at: null, server }, server);
      this.own = { run: this.run, seq, at: now, since: now, server };
      counter.acknowledged = seq;
      counter.hasUncounted = false;
      this.isUncounted = false;
    } catch (error) {
      if (!isOfPostgres(error)) throw error;
      if (!this.isUncounted)
        this.logger.warn(`This process is not counted in Postgres: ${describeError(error)}`);
      this.isUncounted = true;
    }
  }

  /** Postgres is a new server, or has lost something. If this fails, the next poll does it again. */
  private async meet(client: pg.ClientBase, found: store.Found, comparison: Comparison): Promise<void> {
    const { server } = found;
    const row = found.runs.get(this.run);
    // Another process, which noticed it first, has made its row there.
    const isNoted = row === undefined && found.regression?.state === 'another_database';
    const isAnother = isNoted || !comparison.isSame;
    const { current: before } = this.recovery;
    const pending = before?.isOwn === true && !this.counter.isCounting ? before : null;
    const lost = lostRuns(comparison.lost, row, this.counter, pending !== null);
    const newest = Math.max(...[...(this.own ? [this.own] : []), ...this.known.values()].map(({ at }) => at));
    const [from, gap] = lostTime(comparison, row, newest, this.counter, pending?.regression);
    let noted: typeof this.noted = found.regression;
    if (isAnother || lost.size > 0) {
      const joined = server === this.counter.server ? this.noted : null;
      // What waits for a decision still does on the next server, and with what else is lost until then.
      const isTooLong =
        joined?.state === 'waiting' || pending?.state === 'waiting' || gap > this.env.journalKeepMs;
      const state: RegressionState = isAnother ? 'another_database' : isTooLong ? 'waiting' : 'put_back';
      const facts = isAnother
        ? { from: null, gap: null, state }
        : { from, gap: Math.ceil(gap / 1_000), state };
      // A decision is about what was lost before it.
      const isSame = pending?.state === state || (state === 'waiting' && joined?.state === state);
      const number = joined === null ? 1 : joined.number + (isSame ? 0 : 1);
      noted = await store.note(client, server, facts, ...split(lost, this.run), number);
    }
    const seq = row?.seq ?? (isAnother ? this.counter.acknowledged : 0n);
    if (row === undefined) {
      const at = isAnother || lost.size === 0 ? null : from;
      await store.beginRun(client, { run: this.run, seq, at, server: this.counter.server }, server);
    }
    const isOthers = lost.size === 0 && !isAnother && found.regression !== null;
    const runs = new Map([...(pending?.regression.runs ?? []), ...lost]);
    const facts = isOthers
      ? factsOf(found.regression, server)
      : { server, from: isAnother || lost.size === 0 ? null : new Date(from), gapMs: gap, runs };
    const current = await this.recovery.prepare(noted, facts, true);
    this.own = {
      run: this.run,
      at: found.now,
      since: found.now,
      ...this.own,
      server: this.counter.server,
      seq,
    };
    this.counter.isCounting = false;
    this.counter.lowest = null;
    this.counter.server = server;
    this.hasAnswered = false;
    this.noted = noted;
    this.rollCall.begin(server, this.known.values(), without(found.runs, this.run).values());
    this.recovery.begin(current);
  }

  /** The regression of this server as it is noted now. @returns whether every cache is to be compared */
  private async follow({ server, regression }: store.Found): Promise<boolean> {
    if (regression === null) return false;
    if (regression.id !== this.noted?.id) {
      // Another process has noticed it.
      const isOwn = !this.counter.isCounting;
      const facts = factsOf(regression, server);
      // What this process has still to put back of an earlier one is not dropped.
      const pending = isOwn ? (this.recovery.current?.regression.runs ?? []) : [];
      const runs = new Map([...pending, ...facts.runs]);
      const current = await this.recovery.prepare(regression, { ...facts, runs }, isOwn);
      this.noted = regression;
      this.recovery.begin(current);
      return true;
    }
    this.noted = regression;
    this.recovery.decided(regression.state);
    return false;
  }

  /** Responds to the roll call. While an administrator has not decided, this process is not counted further. */
  private async answer({ state, isOwn, regression }: Current, client: pg.ClientBase): Promise<void> {
    const { counter } = this;
    if (!isOwn || counter.isCounting) return;
    const isOpen = state === 'waiting';
    // Statements that were not counted and end from here on get a higher one.
    if (!isOpen) counter.acknowledged += 1n;
    const seq = isOpen ? this.own!.seq : counter.acknowledged;
    if (!(await store.advanceRun(client, this.run, regression.server, seq)))
      throw new Error('Postgres is another server than before');
    this.own = { ...this.own!, server: regression.server };
    if (!isOpen) {
      counter.hasUncounted = false;
      counter.isCounting = true;
    }
    this.hasAnswered = true;
    this.feed.poll(false);
  }

  private remember(found: store.Found, isAll: boolean): void {
    const row = found.runs.get(this.run);
    if (row !== undefined) this.own = { ...row, since: this.own?.since ?? row.at };
    this.known = knownFrom(this.known, without(found.runs, this.run), isAll, found.now);
  }

  private async callRoll(client: pg.ClientBase, found: store.Found): Promise<void> {
    const silent = this.rollCall.update(without(found.runs, this.run));
    if (silent === null) return;
    if (silent.length > 0) {
      this.logger.warn(
        `${silent.length} processes have not responded on this Postgres server, and count as ended.`,
      );
      await store.endSilentRuns(client, silent);
    }
  }

  private admitAll(): void {
    for (const waiter of this.waiters) waiter();
  }

  private async end(client: pg.ClientBase): Promise<void> {
    await store.endRun(client, this.run);
  }
}

function factsOf({ from, gap, runs }: store.Noted, server: string): Omit<Regression, 'id' | 'signal'> {
  return {
    server,
    from: from === null ? null : new Date(from),
    gapMs: (gap ?? 0) * 1_000,
    runs: new Map(Object.entries(runs)),
  };
}

/** The statement was rejected, and the connection is as it was. */
function isOfPostgres(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

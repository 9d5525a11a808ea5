import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { clientOptions } from './data-source-options.js';
import { GatewayClient } from './gateway-client.js';
import { DatabaseService } from './database.service.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { describeError } from '../errors/describe-error.js';

/** A notification may be lost, so the counters are also polled this often. */
const POLL_MS = 2_000;
/** A connection that does not respond within this time is replaced. */
const QUERY_TIMEOUT = patience('the change feed', 2_000);
const RETRY_MS = 500;

/** `<value> <row id>`, as the triggers send it. */
const PAYLOAD = /^(\d+) (\S+)$/;

/** Prepared: every process asks for it every 2 seconds, and the plan takes longer than its execution. */
const READ_COUNTERS = {
  name: 'postern-read-counters',
  text: 'SELECT name, value FROM change_counter WHERE name = ANY ($1)',
};

/** A cache of rows of one table, and how it is updated. */
export interface Cache {
  /** Applies the change of one row at once; null: a change leads to a full comparison. */
  onChange: ((id: string) => void) | null;
  /** Reads the rows again on this connection and corrects the whole cache. */
  compare: (client: pg.ClientBase) => Promise<void>;
}

/** The subscription of a cache to one counter of change_counter. */
export interface Subscription {
  /** When Postgres last confirmed that the cache is up to date (monotonic ms); -Infinity: never. */
  readonly verifiedAt: number;
}

/** What a check of the database asks for. */
export interface CheckResult {
  /** Postgres has lost changes: every cache is to be compared, whatever its counter is. */
  readonly compareAll: boolean;
  /** The next poll begins after so many milliseconds at most. */
  readonly againMs: number;
}

interface Subscriber extends Subscription {
  readonly cache: Cache;
  /** Counter of the last change that the cache reflects; null: unknown. */
  applied: bigint | null;
  verifiedAt: number;
}

/**
 * Notifies caches of changed rows, on one connection for all. A notification reports a change at once; the polled
 * counters guarantee that none is missed. A gap in a counter, a new connection, or a counter that went back because a
 * backup was restored leads to a comparison of the whole cache.
 *
 * A table takes part with a trigger that executes the function `count_change`: each transaction increments the counter once, and
 * notifies `postern_<counter>` with `<value> <row id>` for each row.
 */
@Injectable()
export class ChangeFeed implements OnApplicationShutdown {
  private readonly logger = new Logger('Database');
  private readonly subscribers = new Map<string, Subscriber>();
  private readonly readers = new Map<string, (client: pg.ClientBase) => Promise<void>>();
  private readonly channels = new Map<string, (payload: string) => void>();
  private check: ((client: pg.ClientBase) => Promise<CheckResult>) | null = null;
  private atEnd: ((client: pg.ClientBase) => Promise<void>) | null = null;
  private reconnecting = false;
  private stopped = false;
  private running: Promise<void> | null = null;
  private errorLogged = false;
  /** A cache is to be verified before the next poll. */
  private due = false;
  /** The database is checked again from then on (monotonic ms): not for each notification. */
  private checkAt = -Infinity;
  private wake: () => void = () => {};

  constructor(
    @InjectSettings() private readonly env: Settings,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      this.running ??= this.run();
      return Promise.resolve();
    });
  }

  /** Call in a constructor. @param counter its name in change_counter */
  subscribe(counter: string, cache: Cache): Subscription {
    const subscriber: Subscriber = { cache, applied: null, verifiedAt: -Infinity };
    this.subscribers.set(counter, subscriber);
    return subscriber;
  }

  /**
   * Passes on the notifications of a further channel. They may be lost, so the listener must also work without them.
   * Call in a constructor.
   *
   * @param onNotified gets the payload
   */
  listen(channel: string, onNotified: (payload: string) => void): void {
    this.channels.set(channel, onNotified);
  }

  /**
   * Checks the database on each new connection and at each poll, before caches are verified. Call in a constructor.
   *
   * @param check if it throws, no cache is verified: the connection is renewed and the check repeated
   * @param atEnd called when the process ends, if there is a connection
   */
  checkFirst(
    check: (client: pg.ClientBase) => Promise<CheckResult>,
    atEnd: (client: pg.ClientBase) => Promise<void>,
  ): void {
    this.check = check;
    this.atEnd = atEnd;
  }

  /** Begins the next poll at once. @param isOther the server may be another one than that of this connection */
  poll(isOther: boolean): void {
    if (isOther) this.reconnecting = true;
    else {
      this.due = true;
      this.checkAt = -Infinity;
    }
    this.wake();
  }

  /**
   * Reads more with each poll, after the caches are verified. Call in a constructor.
   *
   * @param read if it rejects, it is called again at the next poll
   */
  onPoll(what: string, read: (client: pg.ClientBase) => Promise<void>): void {
    this.readers.set(what, read);
  }

  /** Does the cache of this counter reflect the changes up to this value? True if it has none. */
  reflects(counter: string, value: bigint): boolean {
    const subscriber = this.subscribers.get(counter);
    return subscriber === undefined || (subscriber.applied !== null && subscriber.applied >= value);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.wake();
    await withTimeout(CLOSE_TIMEOUT.ms, this.running ?? Promise.resolve());
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      try {
        await this.runConnection();
      } catch (error) {
        this.logError('Changes', error);
      }
      if (!this.stopped) await this.pause(RETRY_MS);
    }
  }

  /** Listens, compares, then polls until the connection breaks. */
  private async runConnection(): Promise<void> {
    const client = new GatewayClient({
      ...clientOptions(directUrl(this.env), {
        // Versions before 2 do not charge budgets of groups, of the installation, with filters or for each session.
        applicationName: 'postern-changes/2',
        queryTimeout: QUERY_TIMEOUT,
      }),
    });
    try {
      let broken: Error | null = null;
      client.on('error', (error) => {
        broken = error;
        this.wake();
      });
      client.on('notification', ({ channel, payload = '' }) => {
        if (this.channels.has(channel)) this.channels.get(channel)!(payload);
        else this.onNotification(channel, payload);
      });
      await client.connect();
      for (const counter of this.subscribers.keys()) await client.query(`LISTEN postern_${counter}`);
      for (const channel of this.channels.keys()) await client.query(`LISTEN ${channel}`);
      for (const subscriber of this.subscribers.values()) subscriber.applied = null;
      this.reconnecting = false;
      this.checkAt = -Infinity;
      const alive = () => !this.stopped && broken === null && !this.reconnecting;
      while (alive()) {
        this.due = false;
        const againMs = await this.verify(client);
        if (alive() && !this.due) await this.pause(againMs);
      }
      if (broken !== null) throw broken as Error;
      if (this.stopped) await this.atEnd?.(client);
    } finally {
      await Promise.race([client.end(), sleep(1_000, undefined, { ref: false })]);
    }
  }

  private onNotification(channel: string, payload: string): void {
    const subscriber = this.subscribers.get(channel.slice('postern_'.length));
    // Any session of the database may notify, with any payload.
    const [, counted, id] = PAYLOAD.exec(payload) ?? [];
    if (subscriber === undefined || counted === undefined || id === undefined) return;
    if (subscriber.cache.onChange === null) {
      this.due = true;
      this.wake();
      return;
    }
    subscriber.cache.onChange(id);
    const value = BigInt(counted);
    // Only the next value is accepted: after a gap, the poll compares everything.
    if (subscriber.applied !== null && value === subscriber.applied + 1n) subscriber.applied = value;
  }

  /**
   * Verifies every cache. One whose comparison fails does not stop the others; it is retried at the next poll.
   *
   * @returns milliseconds until the next poll, at most
   */
  private async verify(client: pg.Client): Promise<number> {
    if (performance.now() >= this.checkAt) await this.checkDatabase(client);
    const askedAt = performance.now();
    const { rows } = await client.query<{ name: string; value: string }>({
      ...READ_COUNTERS,
      values: [[...this.subscribers.keys()]],
    });
    let failed = false;
    for (const [counter, subscriber] of this.subscribers) {
      const value = BigInt(rows.find(({ name }) => name === counter)?.value ?? 0);
      try {
        if (value !== subscriber.applied) await this.compare(client, subscriber, value);
        subscriber.verifiedAt = askedAt;
      } catch (error) {
        failed = true;
        this.logError(`Changes of ${counter}`, error);
      }
    }
    for (const [what, read] of this.readers) {
      try {
        await read(client);
      } catch (error) {
        failed = true;
        this.logError(what, error);
      }
    }
    if (!failed) this.errorLogged = false;
    return Math.max(this.checkAt - performance.now(), 0);
  }

  private async checkDatabase(client: pg.Client): Promise<void> {
    this.checkAt = Infinity;
    const { compareAll, againMs } = (await this.check?.(client)) ?? { compareAll: false, againMs: POLL_MS };
    if (compareAll) for (const subscriber of this.subscribers.values()) subscriber.applied = null;
    // Another check may have been asked for meanwhile.
    this.checkAt = Math.min(this.checkAt, performance.now() + Math.min(againMs, POLL_MS));
  }

  /** Compares a cache. The counter was read before the rows, so that they are at least as new. */
  private async compare(client: pg.Client, subscriber: Subscriber, value: bigint): Promise<void> {
    const { applied } = subscriber;
    await subscriber.cache.compare(client);
    // Otherwise notifications have advanced it meanwhile.
    if (subscriber.applied === applied) subscriber.applied = value;
  }

  /** Logs once per outage: everything is retried at short intervals. */
  private logError(what: string, error: unknown): void {
    if (!this.stopped && !this.errorLogged)
      this.logger.warn(`${what} cannot be read right now: ${describeError(error)}`);
    this.errorLogged = true;
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

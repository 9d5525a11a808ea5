import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { clientOptions } from './data-source-options.js';
import { DatabaseService } from './database.service.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';
import { describeError } from '../errors/describe-error.js';

/** Through some poolers a LISTEN looks alive and delivers nothing: the counters are read this often all the same. */
const POLL_MS = 2_000;
/** A connection that answers no slower than this is alive. */
const QUERY_TIMEOUT_MS = 2_000;
const RETRY_MS = 500;

/** On which a connection speaks to itself, to learn whether notifications arrive at all. */
const ECHO = 'postern_echo';

/** `<value> <row id>`, as the triggers send it. */
const PAYLOAD = /^(\d+) (\S+)$/;

const READ_COUNTERS = 'SELECT name, value FROM change_counter WHERE name = ANY ($1)';

/** What somebody keeps of a table, and how it is kept true. */
export interface Kept {
  /** Applies the change of one row at once; null: a change leads to a comparison like everything else. */
  onChange: ((id: string) => void) | null;
  /** Makes all that is kept true by reading it again on this connection. */
  compare: (client: pg.ClientBase) => Promise<void>;
}

/** One counter of change_counter as this process has followed it. */
export interface Following {
  /** When Postgres last confirmed that everything kept is true (monotonic ms); -Infinity: never. */
  readonly verifiedAt: number;
}

interface Followed extends Following {
  readonly kept: Kept;
  /** Counter of the last change that is reflected in what is kept; null: unknown. */
  applied: bigint | null;
  verifiedAt: number;
}

/**
 * Tells those who keep rows in memory what changed, on one connection for all: notifications make a change known at
 * once, the polled counters make it certain. Whatever does not fit (a gap in a counter, a new connection, a counter
 * that went back because a backup was restored) leads to a comparison of all that is kept.
 *
 * A table takes part by a trigger that raises its counter and notifies `postern_<counter>` with `<value> <row id>`, as
 * the migrations key-changes and providers do.
 */
@Injectable()
export class ChangeFollower implements OnApplicationShutdown {
  private readonly logger = new Logger('Database');
  private readonly followed = new Map<string, Followed>();
  private readonly heard = new Map<string, (payload: string) => void>();
  private stopped = false;
  private running: Promise<void> | null = null;
  private told = false;
  private silenceTold = false;
  /** Something is to be verified before the next poll is due. */
  private due = false;
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

  /** @param counter its name in change_counter; to be called while the application is put together */
  follow(counter: string, kept: Kept): Following {
    const followed: Followed = { kept, applied: null, verifiedAt: -Infinity };
    this.followed.set(counter, followed);
    return followed;
  }

  /**
   * Passes on the notifications of one more channel while they arrive; who hears must be able to do without.
   *
   * @param onNotified gets the payload; to be called while the application is put together
   */
  hear(channel: string, onNotified: (payload: string) => void): void {
    this.heard.set(channel, onNotified);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.wake();
    await withTimeout(GOODBYE_MS, this.running ?? Promise.resolve());
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      try {
        await this.live();
      } catch (error) {
        this.complain('Changes', error);
      }
      if (!this.stopped) await this.pause(RETRY_MS);
    }
  }

  /** One connection's life: listen, compare, then poll until it breaks. */
  private async live(): Promise<void> {
    const client = new pg.Client({
      ...clientOptions(this.env.databaseUrl, {
        applicationName: 'postern-changes',
        queryTimeoutMs: QUERY_TIMEOUT_MS,
      }),
    });
    try {
      let broken: Error | null = null;
      client.on('error', (error) => {
        broken = error;
        this.wake();
      });
      const word = randomUUID();
      let heard = false;
      client.on('notification', ({ channel, payload = '' }) => {
        if (channel === ECHO) heard ||= payload === word;
        else if (this.heard.has(channel)) this.heard.get(channel)!(payload);
        else this.onNotification(channel, payload);
      });
      await client.connect();
      for (const counter of this.followed.keys()) await client.query(`LISTEN postern_${counter}`);
      for (const channel of this.heard.keys()) await client.query(`LISTEN ${channel}`);
      await client.query(`LISTEN ${ECHO}`);
      await client.query('SELECT pg_notify($1, $2)', [ECHO, word]);
      for (const followed of this.followed.values()) followed.applied = null;
      const alive = () => !this.stopped && broken === null;
      while (alive()) {
        this.due = false;
        await this.verify(client);
        if (alive() && !this.due) await this.pause(POLL_MS);
        if (alive() && !heard) this.complainOfSilence();
      }
      if (broken !== null) throw broken as Error;
    } finally {
      await Promise.race([client.end(), sleep(1_000, undefined, { ref: false })]);
    }
  }

  private onNotification(channel: string, payload: string): void {
    const followed = this.followed.get(channel.slice('postern_'.length));
    // Any session of the database may notify, and say anything.
    const [, counted, id] = PAYLOAD.exec(payload) ?? [];
    if (followed === undefined || counted === undefined || id === undefined) return;
    if (followed.kept.onChange === null) {
      this.due = true;
      this.wake();
      return;
    }
    followed.kept.onChange(id);
    const value = BigInt(counted);
    // Only the very next change keeps the count: after a gap the poll compares everything.
    if (followed.applied !== null && value === followed.applied + 1n) followed.applied = value;
  }

  /** One that cannot be compared must not keep the others from being verified; it is tried again at the next poll. */
  private async verify(client: pg.Client): Promise<void> {
    const askedAt = performance.now();
    const { rows } = await client.query<{ name: string; value: string }>(READ_COUNTERS, [
      [...this.followed.keys()],
    ]);
    let failed = false;
    for (const [counter, followed] of this.followed) {
      const value = BigInt(rows.find(({ name }) => name === counter)?.value ?? 0);
      try {
        if (value !== followed.applied) await this.compare(client, followed, value);
        followed.verifiedAt = askedAt;
      } catch (error) {
        failed = true;
        this.complain(`Changes of ${counter}`, error);
      }
    }
    if (!failed) this.told = false;
  }

  /** The counter was read before the rows are, so that they are at least as new as it says. */
  private async compare(client: pg.Client, followed: Followed, value: bigint): Promise<void> {
    const { applied } = followed;
    await followed.kept.compare(client);
    // Else notifications have moved it on meanwhile.
    if (followed.applied === applied) followed.applied = value;
  }

  /** Once per outage: everything is tried again at short intervals. */
  private complain(what: string, error: unknown): void {
    if (!this.stopped && !this.told)
      this.logger.warn(`${what} cannot be followed right now: ${describeError(error)}`);
    this.told = true;
  }

  private complainOfSilence(): void {
    if (this.silenceTold) return;
    this.silenceTold = true;
    this.logger.warn(
      'Notifications of Postgres do not arrive, as behind a pooler in transaction mode: changes of keys and providers ' +
        'take up to 3 s. Let DATABASE_URL lead there directly or in session mode.',
    );
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

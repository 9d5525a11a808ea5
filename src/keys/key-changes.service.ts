import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { clientOptions } from '../database/data-source-options.js';
import { DatabaseService } from '../database/database.service.js';
import { describeFault } from '../database/database-fault.js';
import { FIND_GRANTS, type GrantRow, grantsOf } from './find-grants.js';
import { KeyCache } from './key-cache.js';

const CHANNEL = 'postern_keys';
/** Through some poolers a LISTEN looks alive and delivers nothing: the counter is read this often all the same. */
const POLL_MS = 2_000;
/** A connection that answers no slower than this is alive. */
const QUERY_TIMEOUT_MS = 2_000;
const RETRY_MS = 500;
/** Digests compared in one query. */
const COMPARED_AT_ONCE = 5_000;

const READ_COUNTER = "SELECT value FROM change_counter WHERE name = 'keys'";

/**
 * Keeps the key cache true: notifications make a change known at once, the polled counter makes it certain. Whatever
 * does not fit (a gap in the counter, a new connection) leads to a comparison of all that is kept.
 */
@Injectable()
export class KeyChangesService implements OnApplicationShutdown {
  private readonly logger = new Logger('Keys');
  private stopped = false;
  private running: Promise<void> | null = null;
  private wake: () => void = () => {};
  /** Counter of the last change that the cache reflects; null: unknown. */
  private applied: bigint | null = null;
  private verifiedAt = -Infinity;

  constructor(
    private readonly cache: KeyCache,
    @InjectEnv() private readonly env: Settings,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      this.running ??= this.run();
      return Promise.resolve();
    });
  }

  /** Milliseconds since Postgres last confirmed that the cache is true. */
  get unverifiedMs(): number {
    return performance.now() - this.verifiedAt;
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      try {
        await this.follow();
      } catch (error) {
        if (!this.stopped)
          this.logger.warn(`Key changes cannot be followed right now: ${describeFault(error)}`);
      }
      if (!this.stopped) await this.pause(RETRY_MS);
    }
  }

  /** One connection's life: listen, compare, then poll until it breaks. */
  private async follow(): Promise<void> {
    const client = new pg.Client({
      ...clientOptions(this.env.databaseUrl, {
        applicationName: 'postern-keys',
        queryTimeoutMs: QUERY_TIMEOUT_MS,
      }),
      keepAlive: true,
    });
    try {
      let broken: Error | null = null;
      client.on('error', (error) => {
        broken = error;
        this.wake();
      });
      client.on('notification', ({ payload }) => this.onNotification(payload ?? ''));
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      this.applied = null;
      while (!this.stopped && broken === null) {
        await this.verify(client);
        await this.pause(POLL_MS);
      }
      if (broken !== null) throw broken as Error;
    } finally {
      await Promise.race([client.end(), sleep(1_000, undefined, { ref: false })]);
    }
  }

  private onNotification(payload: string): void {
    const [counted, id] = payload.split(' ') as [string, string | undefined];
    if (id === undefined) return;
    this.cache.forget(id);
    const value = BigInt(counted);
    // Only the very next change keeps the count: after a gap the poll compares everything.
    if (this.applied !== null && value === this.applied + 1n) this.applied = value;
  }

  private async verify(client: pg.Client): Promise<void> {
    const askedAt = performance.now();
    const { rows } = await client.query<{ value: string }>(READ_COUNTER);
    const value = BigInt(rows[0]?.value ?? 0);
    if (this.applied === null || value > this.applied) await this.compare(client, value);
    this.verifiedAt = askedAt;
  }

  /** Reads every kept key again. The counter was read before the keys, so that they are at least as new as it says. */
  private async compare(client: pg.Client, value: bigint): Promise<void> {
    const digests = this.cache.digests();
    for (let at = 0; at === 0 || at < digests.length; at += COMPARED_AT_ONCE) {
      const part = digests.slice(at, at + COMPARED_AT_ONCE);
      const before = this.cache.version;
      const values = [part.map((digest) => Buffer.from(digest, 'hex'))];
      const { rows } = await client.query<GrantRow>(FIND_GRANTS, values);
      if (this.cache.version !== before) return this.compare(client, value);
      this.cache.replace(part, grantsOf(rows));
    }
    if (this.applied === null || value > this.applied) this.applied = value;
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

import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Cron, CronExpression, Interval } from '@nestjs/schedule';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { openPool } from '../database/open-pool.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { Regressions } from '../regressions/regressions.service.js';
import { PartitionsService } from '../request-log/partitions.service.js';
import { recordedUntil } from '../request-log/recorded-until.js';
import {
  ADD_NEW_ROWS,
  CLEAR,
  CLEAR_DAYS,
  CLEAR_LAST_DAYS,
  COMPLETE,
  CURSOR,
  deleteOld,
  DIFFERENT,
  FILL,
  FILL_DAYS,
  FILL_LAST_DAYS,
  FIRST_START,
  INCOMPLETE,
  isAdded,
  LOCK_CURSOR,
  MOVE_COMPLETE,
  MOVE_CURSOR,
  REPAIRED,
  SLOT_MS,
} from './rollup-sql.js';

const DAY_MS = 86_400_000;
/** How often the rows written since are added. */
const EVERY_MS = 10_000;
/** After a long pause, or with an existing log: rows of this much time are added in one transaction. */
const STEP_MS = 3_600_000;
/** A repricing waits at most this long until usage has the new costs, and looks this often. */
const CATCH_UP = patience('usage of new costs', 10_000);
const LOOK_MS = 50;
/** Half hours of keys that one statement computes again. */
const MAX_AT_ONCE = 1_000;
const POOL = {
  applicationName: 'postern-usage',
  poolSize: 1,
  queryTimeout: patience('a statement about usage', 600_000),
};

interface Cursors {
  cursor: Date;
  /** Rows recorded up to this time are in all sums. */
  complete: Date;
}

interface KeySlot {
  slot: Date;
  key_id: string;
}

/**
 * Keeps the half-hourly sums in `usage_slot` and the daily ones in `usage_day`, from which usage is answered without
 * reading the log.
 *
 * One process at a time adds the rows recorded since the cursor, and moves the cursor in the same transaction: a process
 * that is killed leaves nothing counted twice or missed. A row that was changed after it was written may be counted
 * already: the same transaction computes the slots of its key again from the log.
 */
@Injectable()
export class UsageRollup implements OnApplicationShutdown {
  private readonly logger = new Logger('Usage');
  private readonly outage = new OutageLog(this.logger);
  private readonly pool: pg.Pool;
  private round: Promise<void> | null = null;
  private stopped = false;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly database: DatabaseService,
    partitions: PartitionsService,
    regressions: Regressions,
  ) {
    this.pool = openPool(directUrl(env), POOL, this.logger);
    regressions.cursors.add('usage', async (client) => {
      const { rows } = await client.query<{ cursor: Date }>(CURSOR);
      return rows[0]?.cursor ?? null;
    });
    partitions.keepWhile(async (client, table) => {
      const { rows } = await client.query<{ added: boolean }>(isAdded(table));
      return !rows[0]!.added;
    });
  }

  @Interval(EVERY_MS)
  onInterval(): void {
    if (this.env.worker === 1 && this.database.notReady === null) void this.run();
  }

  @Cron(CronExpression.EVERY_DAY_AT_1AM, { timeZone: 'UTC' })
  async onNight(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    await this.attempt('Usage could not be compared with the log', (client) => this.reconcile(client));
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await withTimeout(CLOSE_TIMEOUT.ms, this.round ?? Promise.resolve());
    await withTimeout(CLOSE_TIMEOUT.ms, this.pool.end());
  }

  /** Adds all rows recorded by now, unless another process is doing so. Never rejects. */
  run(): Promise<void> {
    this.round ??= this.attempt('Usage could not be added up', (client) => this.addAll(client)).finally(
      () => (this.round = null),
    );
    return this.round;
  }

  /**
   * Adds all rows recorded by now, also if another process is adding them, or if writers keep them from being visible yet.
   * Never rejects, and resolves after CATCH_UP at the latest: then the rows are added later.
   */
  async catchUp(): Promise<void> {
    const giveUpAt = performance.now() + CATCH_UP.ms;
    try {
      await withTimeout(CATCH_UP.ms, this.reachNow(giveUpAt));
    } catch (error) {
      this.outage.report('Usage could not be added up', describeError(error));
    }
  }

  private async reachNow(giveUpAt: number): Promise<void> {
    const { rows } = await this.pool.query<{ now: Date }>('SELECT clock_timestamp() AS now');
    while (!this.stopped && performance.now() < giveUpAt) {
      await this.run();
      const { rows: reached } = await this.pool.query<{ cursor: Date }>(CURSOR);
      if (reached[0]!.cursor >= rows[0]!.now) return;
      await sleep(LOOK_MS);
    }
  }

  private async attempt(what: string, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    let client: pg.PoolClient | undefined;
    try {
      client = await this.pool.connect();
      await work(client);
      client.release();
      this.outage.ended('Usage is added up again.');
    } catch (error) {
      client?.release(true);
      if (!this.stopped) this.outage.report(what, describeError(error));
    }
  }

  private async addAll(client: pg.PoolClient): Promise<void> {
    const until = await recordedUntil(client);
    while (!this.stopped && (await this.addStep(client, until)));
  }

  /** @returns whether there may be more rows until then */
  private async addStep(client: pg.PoolClient, until: Date): Promise<boolean> {
    await client.query('BEGIN');
    const { rows } = await client.query<Cursors>(LOCK_CURSOR);
    const [found] = rows;
    if (found !== undefined && found.complete < found.cursor) {
      await this.complete(client, found);
      await client.query('COMMIT');
      return true;
    }
    // No row: another process holds it.
    const cursor = found?.cursor;
    if (cursor === undefined || cursor >= until) {
      await client.query('ROLLBACK');
      return false;
    }
    const upTo = await this.stepEnd(client, cursor, until);
    await client.query(ADD_NEW_ROWS, [cursor, upTo]);
    const repaired = await client.query<KeySlot>(REPAIRED, [cursor, upTo]);
    await this.computeAgain(client, repaired.rows, upTo, COMPLETE);
    await client.query(MOVE_CURSOR, [upTo]);
    await client.query('COMMIT');
    return upTo < until;
  }

  /** Computes again, for a step, what a process of an earlier version has added. It is still running, or was started again. */
  private async complete(client: pg.PoolClient, { complete, cursor }: Cursors): Promise<void> {
    const upTo = await this.stepEnd(client, complete, cursor);
    const { rows } = await client.query<KeySlot>(INCOMPLETE, [complete, upTo]);
    await this.computeAgain(client, rows, cursor, COMPLETE);
    await client.query(MOVE_COMPLETE, [upTo]);
  }

  private async stepEnd(client: pg.PoolClient, cursor: Date, until: Date): Promise<Date> {
    if (until.getTime() - cursor.getTime() <= STEP_MS) return until;
    const { rows } = await client.query<{ first: Date | null }>(FIRST_START);
    const start = Math.max(cursor.getTime(), (rows[0]!.first ?? until).getTime());
    return new Date(Math.min(start + STEP_MS, until.getTime()));
  }

  /**
   * Computes the sums of these half hours and keys from their rows recorded up to the cursor.
   *
   * @param only selects some of them
   */
  private async computeAgain(
    client: pg.PoolClient,
    all: readonly KeySlot[],
    cursor: Date,
    only?: typeof COMPLETE,
  ): Promise<void> {
    for (let i = 0; i < all.length; i += MAX_AT_ONCE) {
      let some = all.slice(i, i + MAX_AT_ONCE);
      const times = some.map(({ slot }) => slot.getTime());
      const [first, last] = [Math.min(...times), Math.max(...times)];
      const bounds = [cursor, new Date(first), new Date(last + SLOT_MS)];
      const listed = () => [some.map(({ slot }) => slot), some.map(({ key_id }) => key_id)];
      if (only !== undefined) some = (await client.query<KeySlot>(only, [...listed(), ...bounds])).rows;
      const [slots, keys] = listed();
      await client.query(CLEAR, [slots, keys]);
      await client.query(FILL, [slots, keys, ...bounds]);
      await client.query(CLEAR_DAYS, [slots, keys]);
      const days = [first, last + DAY_MS].map((time) => new Date(Math.floor(time / DAY_MS) * DAY_MS));
      await client.query(FILL_DAYS, [slots, keys, ...days]);
    }
  }

  /**
   * Compares yesterday's slots with the log and computes those again that differ: a server whose clock stepped back (a
   * failover) can write a row behind the cursor. Deletes sums that are older than USAGE_RETENTION_DAYS, and than the log.
   */
  private async reconcile(client: pg.PoolClient): Promise<void> {
    await client.query('BEGIN');
    const { rows } = await client.query<Cursors>(LOCK_CURSOR);
    if (rows[0] !== undefined) {
      const { cursor } = rows[0];
      const { rows: different } = await client.query<KeySlot>(DIFFERENT, [cursor]);
      await this.computeAgain(client, different, cursor);
      if (different.length > 0) {
        this.logger.warn(
          `${different.length} half-hourly sums of yesterday differed from the log and were computed again.`,
        );
      }
      await client.query(CLEAR_LAST_DAYS);
      await client.query(FILL_LAST_DAYS);
      // Questions about days that the log has are answered from the sums as well.
      const days = Math.max(this.env.usageRetentionDays, this.env.requestLogRetentionDays);
      for (const table of ['usage_slot', 'usage_day'] as const) await client.query(deleteOld(table), [days]);
    }
    await client.query('COMMIT');
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, Logger, type OnApplicationShutdown, Optional } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { openPool } from '../database/open-pool.js';
import { formatDecimal, parseDecimal } from '../platform/decimal.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { startOf } from '../request-log/column-domains.js';
import type { LogRow } from '../request-log/columns.js';
import {
  BOUND_COLUMNS,
  boundsOf,
  type COST_COLUMNS,
  costOf,
  IS_PRICEABLE_SQL,
  isOfWebSocket,
  isUnknown,
  LACKS_PRICE_SQL,
  limitsOf,
  priceIdOf,
  SELECT_COST_COLUMNS,
  setBounds,
  setCost,
  UPDATE_COSTS,
  usageOf,
} from '../request-log/row-cost.js';
import { COST_SCALE } from './cost.js';
import { costBounds } from './costs/cost-bounds.js';
import { priceAt, PriceResolver } from './price-resolver.js';
import { costOfUsage, modelsOf } from './costs/usage-cost.js';

/** Rows read, and at most committed, at a time. */
const BATCH = 5_000;
/** Rows are searched by parts of the log, so that no query takes long however large it is. */
const SLICE_MS = 3_600_000;
const PURPOSE = {
  applicationName: 'postern-prices',
  poolSize: 2,
  queryTimeout: patience('a statement of a repricing', 60_000),
};

/** How often exclusively() tries again. */
const RETRY_MS = 100;

/** The place after a row. */
export interface Place {
  startedAt: Date;
  id: string;
}

/** The rows whose cost is computed again. */
export interface Range {
  from: Date;
  to: Date;
  /** Only rows after this one. */
  after?: Place;
  provider?: string;
  model?: string;
  /** Only rows without a cost. */
  unpriced?: boolean;
}

/** Costs in USD as exact decimals. */
export interface Repriced {
  /** Rows with token counts whose cost the provider did not report. */
  rows: number;
  changed: number;
  cost_before: string;
  cost_after: string;
  /** Where it stopped; null at the end of the range. */
  next: Place | null;
}

type Row = Pick<
  LogRow,
  'id' | 'provider' | 'model' | (typeof COST_COLUMNS)[number] | (typeof BOUND_COLUMNS)[number]
> & {
  started_at: Date;
  recorded_at: Date;
};

const READ = `
  SELECT id, started_at, recorded_at, provider, model, ${SELECT_COST_COLUMNS}, ${BOUND_COLUMNS.join(', ')} FROM request_log
  WHERE started_at >= $1 AND started_at < $2 AND (started_at, id) > ($1, $3::uuid) AND ${IS_PRICEABLE_SQL}
    AND ($4::text IS NULL OR provider = $4) AND ($5::text IS NULL OR model = $5) AND ($6 OR ${LACKS_PRICE_SQL})
  ORDER BY started_at, id LIMIT ${BATCH}`;

const NO_ID = '00000000-0000-0000-0000-000000000000';

/** The provider of what a repricing on request awaits at its end, if the gateway has one: a function that never rejects. */
export const AFTER_REPRICING = Symbol('AfterRepricing');

/** Computes the cost of stored rows again. What the provider reported is never changed. */
@Injectable()
export class Repricer implements OnApplicationShutdown {
  private readonly pool: pg.Pool;
  private stopped = false;

  constructor(
    @InjectSettings() env: Settings,
    private readonly resolver: PriceResolver,
    /** Brings what is computed from the rows up to date. */
    @Optional() @Inject(AFTER_REPRICING) readonly afterwards: () => Promise<void> = () => Promise.resolve(),
  ) {
    this.pool = openPool(directUrl(env), PURPOSE, new Logger('Prices'));
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await withTimeout(CLOSE_TIMEOUT.ms, this.pool.end());
  }

  /**
   * Runs work that updates costs, unless any replica runs such work.
   *
   * @param patienceMs how long to wait for it to end
   * @returns null if it does not
   */
  async exclusively<T>(work: (client: pg.PoolClient) => Promise<T>, patienceMs = 0): Promise<T | null> {
    const client = await this.pool.connect();
    let isSound = false;
    try {
      const isLocked = await lockWithin(client, patienceMs);
      const result = isLocked ? await work(client) : null;
      if (isLocked) await client.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.repricing]);
      isSound = true;
      return result;
    } finally {
      // The lock ends with its connection.
      client.release(!isSound);
    }
  }

  /**
   * Computes costs again, each batch in a transaction of its own: what is done stays done if it is interrupted, and the
   * safe horizon of exports moves on.
   *
   * @param isDryRun counts what would change, and changes nothing
   * @param budgetMs stops after the batch that takes it past this time
   */
  async reprice(
    client: pg.ClientBase,
    range: Range,
    isDryRun = false,
    budgetMs = Infinity,
  ): Promise<Repriced> {
    const until = performance.now() + budgetMs;
    const sums = { rows: 0, changed: 0, before: 0n, after: 0n };
    const { from, to } = await rowsIn(client, range);
    let place = range.after ?? { startedAt: new Date(from), id: NO_ID };
    let isOver = from === to;
    for (let at = from; !isOver;) {
      if (this.stopped) throw new Error('the gateway is stopping');
      const end = new Date(Math.min(at + SLICE_MS, to));
      const { rows } = await client.query<Row>(READ, [
        place.startedAt,
        end,
        place.id,
        range.provider ?? null,
        range.model ?? null,
        range.unpriced !== true,
      ]);
      await this.repriceBatch(client, rows, sums, isDryRun);
      const last = rows[BATCH - 1];
      if (last === undefined) at = end.getTime();
      place =
        last === undefined ? { startedAt: end, id: NO_ID } : { startedAt: last.started_at, id: last.id };
      isOver = at === to;
      if (performance.now() >= until) break;
    }
    return {
      rows: sums.rows,
      changed: sums.changed,
      cost_before: formatDecimal(sums.before, COST_SCALE),
      cost_after: formatDecimal(sums.after, COST_SCALE),
      next: isOver ? null : place,
    };
  }

  private async repriceBatch(
    client: pg.ClientBase,
    rows: readonly Row[],
    sums: { rows: number; changed: number; before: bigint; after: bigint },
    isDryRun: boolean,
  ): Promise<void> {
    const models = rows.flatMap((row) =>
      modelsOf(row.model, usageOf(row)).map((model) => ({ provider: row.provider, model })),
    );
    await this.resolver.load(models);
    const changed: Row[] = [];
    for (const row of rows) {
      const before = costOf(row);
      const priceId = priceIdOf(row);
      const startedAt = startOf(row.id);
      const usage = usageOf(row);
      const pricesOf = (model: string) => this.resolver.known(row.provider, model);
      // Its prices could not be read: the row stays as it is.
      if (modelsOf(row.model, usage).some((model) => pricesOf(model) === undefined)) continue;
      if (isUnknown(row) && !isOfWebSocket(row)) {
        if (this.bound(row, before)) changed.push(row);
        continue;
      }
      const { nano, price } = costOfUsage(row.model, usage, pricesOf, startedAt);
      const after = nano === null ? null : formatDecimal(nano, COST_SCALE);
      setCost(row, after, nano === null ? null : price!.price.id);
      sums.rows++;
      sums.before += before === null ? 0n : parseDecimal(before, COST_SCALE)!;
      sums.after += nano ?? 0n;
      if (after !== before || priceIdOf(row) !== priceId) changed.push(row);
    }
    sums.changed += changed.length;
    if (isDryRun || changed.length === 0) return;
    await client.query(UPDATE_COSTS, [
      changed.map(({ started_at }) => started_at),
      changed.map(({ id }) => id),
      changed.map(({ recorded_at }) => recorded_at),
      changed.map(costOf),
      changed.map(priceIdOf),
      changed[0]!.started_at,
      changed.at(-1)!.started_at,
      changed.map((row) => boundsOf(row)[0]),
      changed.map((row) => boundsOf(row)[1]),
    ]);
  }

  /** Sets the bounds of a row whose usage is not final, which has no cost. @returns whether that changed it */
  private bound(row: Row, before: string | null): boolean {
    const [lowBefore, highBefore] = boundsOf(row);
    const startedAt = startOf(row.id);
    const prices = row.model === null ? [] : (this.resolver.known(row.provider, row.model) ?? []);
    const dated = priceAt(prices, startedAt);
    const bounds = dated === null ? null : costBounds(dated.price, usageOf(row), limitsOf(row), startedAt);
    const text = (nano: bigint | null | undefined) => (nano == null ? null : formatDecimal(nano, COST_SCALE));
    setCost(row, null, null);
    setBounds(row, text(bounds?.low), text(bounds?.high));
    const [low, high] = boundsOf(row);
    return before !== null || low !== lowBefore || high !== highBefore;
  }
}

/** @returns whether this connection has the lock */
async function lockWithin(client: pg.ClientBase, patienceMs: number): Promise<boolean> {
  for (const until = performance.now() + patienceMs; ; await sleep(RETRY_MS)) {
    const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
      ADVISORY_LOCKS.repricing,
    ]);
    if (rows[0]!.taken || performance.now() >= until) return rows[0]!.taken;
  }
}

const BOUNDS = `
  SELECT min(started_at) AS first, max(started_at) AS last FROM request_log WHERE started_at >= $1 AND started_at < $2`;

/** The part of a range in which there are rows, in Unix milliseconds; a range may be far longer than the log. */
async function rowsIn(
  client: pg.ClientBase,
  { from, to, after }: Range,
): Promise<{ from: number; to: number }> {
  const { rows } = await client.query<{ first: Date | null; last: Date | null }>(BOUNDS, [
    after?.startedAt ?? from,
    to,
  ]);
  const { first, last } = rows[0]!;
  return first === null || last === null
    ? { from: 0, to: 0 }
    : { from: first.getTime(), to: last.getTime() + 1 };
}

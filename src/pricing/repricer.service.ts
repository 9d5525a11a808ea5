import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { openPool } from '../database/open-pool.js';
import { formatDecimal, parseDecimal } from '../platform/decimal.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';
import { startOf } from '../request-log/column-domains.js';
import type { LogRow } from '../request-log/columns.js';
import {
  type COST_COLUMNS,
  costOf,
  IS_PRICEABLE_SQL,
  IS_UNPRICED_SQL,
  priceIdOf,
  SELECT_COST_COLUMNS,
  setCost,
  UPDATE_COSTS,
  usageOf,
} from '../request-log/row-cost.js';
import { COST_SCALE } from './cost.js';
import { priceAt, PriceResolver } from './price-resolver.js';

/** Rows read, and at most committed, at a time. */
const BATCH = 5_000;
/** Rows are searched by parts of the log, so that no query takes long however large it is. */
const SLICE_MS = 3_600_000;
const PURPOSE = { applicationName: 'postern-prices', poolSize: 2, queryTimeoutMs: 60_000 };

/** The rows whose cost is computed again. */
export interface Range {
  from: Date;
  to: Date;
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
}

type Row = Pick<LogRow, 'id' | 'provider' | 'model' | (typeof COST_COLUMNS)[number]> & {
  started_at: Date;
  recorded_at: Date;
};

const READ = `
  SELECT id, started_at, recorded_at, provider, model, ${SELECT_COST_COLUMNS} FROM request_log
  WHERE started_at >= $1 AND started_at < $2 AND (started_at, id) > ($1, $3::uuid) AND ${IS_PRICEABLE_SQL}
    AND ($4::text IS NULL OR provider = $4) AND ($5::text IS NULL OR model = $5) AND ($6 OR ${IS_UNPRICED_SQL})
  ORDER BY started_at, id LIMIT ${BATCH}`;

const NO_ID = '00000000-0000-0000-0000-000000000000';

/** Computes the cost of stored rows again. What the provider reported is never changed. */
@Injectable()
export class Repricer implements OnApplicationShutdown {
  private readonly pool: pg.Pool;
  private stopped = false;

  constructor(
    @InjectSettings() env: Settings,
    private readonly resolver: PriceResolver,
  ) {
    this.pool = openPool(env.databaseUrl, PURPOSE, new Logger('Prices'));
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await withTimeout(GOODBYE_MS, this.pool.end());
  }

  /**
   * Runs work that updates costs, unless any replica runs such work.
   *
   * @returns null if one does
   */
  async exclusively<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T | null> {
    const client = await this.pool.connect();
    let isSound = false;
    try {
      const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
        ADVISORY_LOCKS.repricing,
      ]);
      const result = rows[0]!.taken ? await work(client) : null;
      if (rows[0]!.taken) await client.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.repricing]);
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
   */
  async reprice(client: pg.ClientBase, range: Range, isDryRun = false): Promise<Repriced> {
    const sums = { rows: 0, changed: 0, before: 0n, after: 0n };
    const { from, to } = await rowsIn(client, range);
    for (let at = from; at < to; at += SLICE_MS) {
      const end = new Date(Math.min(at + SLICE_MS, to));
      let start = new Date(at);
      let id = NO_ID;
      for (;;) {
        if (this.stopped) throw new Error('the gateway is stopping');
        const { rows } = await client.query<Row>(READ, [
          start,
          end,
          id,
          range.provider ?? null,
          range.model ?? null,
          range.unpriced !== true,
        ]);
        await this.repriceBatch(client, rows, sums, isDryRun);
        if (rows.length < BATCH) break;
        ({ started_at: start, id } = rows.at(-1)!);
      }
    }
    return {
      rows: sums.rows,
      changed: sums.changed,
      cost_before: formatDecimal(sums.before, COST_SCALE),
      cost_after: formatDecimal(sums.after, COST_SCALE),
    };
  }

  private async repriceBatch(
    client: pg.ClientBase,
    rows: readonly Row[],
    sums: { rows: number; changed: number; before: bigint; after: bigint },
    isDryRun: boolean,
  ): Promise<void> {
    await this.resolver.load(rows.filter((row) => row.model !== null) as (Row & { model: string })[]);
    const changed: Row[] = [];
    for (const row of rows) {
      const before = costOf(row);
      const priceId = priceIdOf(row);
      const startedAt = startOf(row.id);
      const prices = row.model === null ? [] : this.resolver.known(row.provider, row.model);
      // Its prices could not be read: the row stays as it is.
      if (prices === undefined) continue;
      const dated = priceAt(prices, startedAt);
      const nano = dated?.price.costOf(usageOf(row), startedAt) ?? null;
      const after = nano === null ? null : formatDecimal(nano, COST_SCALE);
      setCost(row, after, nano === null ? null : dated!.price.id);
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
    ]);
  }
}

const BOUNDS = `
  SELECT min(started_at) AS first, max(started_at) AS last FROM request_log WHERE started_at >= $1 AND started_at < $2`;

/** The part of a range in which there are rows, in Unix milliseconds; a range may be far longer than the log. */
async function rowsIn(client: pg.ClientBase, { from, to }: Range): Promise<{ from: number; to: number }> {
  const { rows } = await client.query<{ first: Date | null; last: Date | null }>(BOUNDS, [from, to]);
  const { first, last } = rows[0]!;
  return first === null || last === null
    ? { from: 0, to: 0 }
    : { from: first.getTime(), to: last.getTime() + 1 };
}

import type { QueryRunner } from 'typeorm';
import { RecountUnpricedUnits1798000385000 } from '../../migrations/1798000385000-recount-unpriced-units.js';
import type { Settings } from '../../src/config/settings.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import type { NeedsPartition, PartitionsService } from '../../src/request-log/partitions.service.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';
import type { RequestFilter } from '../../src/requests/request-query.js';
import type { UsageGroup } from '../../src/usage/usage-groups.js';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { type Days, daysSql, slotRange } from '../../src/usage/usage-source.js';
import { Cursors } from '../../src/regressions/cursors.js';
import type { Regressions } from '../../src/regressions/regressions.service.js';
import { UsageTotals } from '../../src/usage/usage-totals.js';
import { createDays, insertRow, KEY, TEAM } from '../request-log/rows.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import { createDatabase, nextMillisecond, type TestDatabase } from '../support/database.js';
import { timePasses } from '../support/eventually.js';
import { never } from '../support/never.js';

const DAY_MS = 86_400_000;
const DAYS = 4;
const ZONES = ['UTC', 'Asia/Kolkata', 'America/New_York', 'Asia/Kathmandu'];

let today: number;
/** Cuts a half hour. */
let cut: number;
let database: TestDatabase;
let pool: ReaderPool;
let totals: UsageTotals;
let rollups: UsageRollup[];
let needed: NeedsPartition[];

beforeAll(() => awayFromMidnight());
beforeEach(async () => {
  today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  cut = today - 2 * DAY_MS + 1_234_567;
  database = await createDatabase();
  pool = new ReaderPool({ databaseUrl: database.url } as Settings);
  totals = new UsageTotals(pool, { usageRetentionDays: 800, requestLogRetentionDays: 90 } as Settings);
  needed = [];
  const partitions = { keepWhile: (one: NeedsPartition) => needed.push(one) } as unknown as PartitionsService;
  rollups = [800, 800, 1].map(
    (usageRetentionDays) =>
      new UsageRollup(
        {
          databaseUrl: database.url,
          worker: 1,
          usageRetentionDays,
          requestLogRetentionDays: 90,
        } as Settings,
        { notReady: null } as DatabaseService,
        partitions,
        { cursors: new Cursors() } as Regressions,
      ),
  );
  await createDays(database, ...Array.from({ length: DAYS }, (_, i) => today - i * DAY_MS));
});
afterEach(async () => {
  await Promise.all([pool, ...rollups].map((one) => one.onApplicationShutdown()));
  await database.drop();
});

/** Random calls of the last days, as many writers would store them at once; the first one is soon after `cut`. */
async function insert(count: number): Promise<void> {
  await database.query(
    `INSERT INTO request_log (id, started_at, team_id, key_id, provider, method, path, model, streamed, status, outcome,
       request_bytes, response_bytes, duration_ms, prompt_tokens, completion_tokens, cached_tokens, cost_usd,
       usage_final, cost_low_usd, cost_high_usd, extra_usage)
     SELECT gen_random_uuid(),
       CASE n WHEN 1 THEN to_timestamp($5::float8 / 1000)
         ELSE to_timestamp($1::float8 / 1000) + random() * interval '${DAYS} days' END,
       $2, (ARRAY[$3, gen_random_uuid()])[1 + (random() < 0.1)::int], (ARRAY['openai', 'groq'])[1 + floor(random() * 2)::int],
       'POST', '/v1/responses', (ARRAY['gpt-4o', 'o4-mini', NULL])[1 + floor(random() * 3)::int], false,
       (ARRAY[200, 429, NULL])[1 + floor(random() * 3)::int], 'completed', 10, 20, random() * 90000,
       CASE WHEN n % 5 > 0 THEN NULLIF((random() * 100)::int, 7) END, CASE WHEN n % 5 > 0 THEN NULLIF((random() * 100)::int, 7) END, NULL, NULLIF((random() * 3)::int, 0) * 0.000000001,
       (ARRAY[true, false, NULL])[1 + floor(random() * 3)::int], NULLIF((random() * 3)::int, 0) * 0.000000001,
       NULLIF((random() * 3)::int, 0) * 0.000000003, CASE n % 10 WHEN 0 THEN '{"images":1}'::jsonb END
     FROM generate_series(1, $4::int) AS n`,
    [today - (DAYS - 1) * DAY_MS, TEAM, KEY, count, cut + 60_000],
  );
}

async function expectEqual(groups: UsageGroup[], zone: string, filter: RequestFilter = {}): Promise<void> {
  const page = { limit: 500 };
  const fromSlots = await totals.list(groups, { ...page, ...filter }, zone);
  // A filter that the half-hourly sums do not have, and that excludes nothing.
  const fromRows = await totals.list(groups, { ...page, ...filter, recorded_after: new Date(0) }, zone);
  expect(fromRows.data.length).toBeGreaterThan(0);
  expect(fromSlots).toEqual({ ...fromRows, as_of: fromSlots.as_of });
}

async function expectAllEqual(): Promise<void> {
  for (const zone of ZONES) await expectEqual(['day', 'model'], zone);
  await expectEqual(['team', 'month'], 'UTC');
  await expectEqual(['week'], 'America/New_York');
  await expectEqual(['key', 'month'], 'Asia/Kolkata');
  await expectEqual(['model'], 'UTC');
  await expectEqual(['provider', 'hour'], 'Asia/Kolkata', { key: KEY });
  // A range that cuts half hours, and one within a half hour.
  const from = new Date(cut);
  await expectEqual(['day', 'provider'], 'UTC', { from, to: new Date(today - 7_654_321) });
  await expectEqual(['provider'], 'UTC', { from, to: new Date(today + 7_654_321) });
  await expectEqual(['month'], 'Asia/Kolkata', { from, model: 'gpt-4o' });
  await expectEqual(['half_hour'], 'UTC', { from, to: new Date(from.getTime() + 900_000) });
  // Days begin within half hours: at 18:15, 10:15 or 11:15, and 15:15 UTC.
  await expectEqual(['key', 'week'], 'Pacific/Chatham');
  await expectEqual(['provider', 'month'], 'Asia/Kathmandu', { key: KEY });
  await expectEqual(['hour'], 'Australia/Eucla', { from });
  for (const minutes of [-10, -5, 0, 5, 10]) {
    const start = today - 2 * DAY_MS + (18.25 * 60 + minutes) * 60_000;
    const range = { from: new Date(start), to: new Date(start + DAY_MS) };
    await expectEqual(['day', 'model'], 'Asia/Kathmandu', range);
    await expectEqual(['model', 'week'], 'Asia/Kathmandu', { from: range.from });
  }
}

/** The half hours within which days begin in Kathmandu. */
const SHARED = (column: string) =>
  `date_bin('30 minutes', ${column}, 'epoch') = date_trunc('day', ${column}, 'UTC') + interval '18 hours'`;

/** Exact: the sums in the tables, without the rows that are not in them yet. */
async function storedCost(): Promise<unknown> {
  const sums = (table: string) =>
    database.query(
      `SELECT sum(calls) AS calls, sum(cost_usd) AS cost, sum(unpriced_calls) AS unpriced, sum(unknown_calls) AS unknown,
         sum(unknown_low_usd) AS low, sum(unknown_high_usd) AS high, sum(unbounded_calls) AS unbounded FROM ${table}`,
    );
  const [[slots], [days]] = [await sums('usage_slot'), await sums('usage_day')];
  expect(days).toEqual(slots);
  return slots;
}

async function loggedCost(): Promise<unknown> {
  const [row] = await database.query(
    `SELECT count(*) AS calls, sum(cost_usd) AS cost,
       count(*) FILTER (WHERE cost_usd IS NULL AND usage_final IS DISTINCT FROM false
         AND (prompt_tokens IS NOT NULL OR completion_tokens IS NOT NULL OR extra_usage IS NOT NULL)) AS unpriced,
       count(*) FILTER (WHERE usage_final = false) AS unknown,
       sum(cost_low_usd) FILTER (WHERE usage_final = false) AS low,
       sum(cost_high_usd) FILTER (WHERE usage_final = false) AS high,
       count(*) FILTER (WHERE usage_final = false AND cost_high_usd IS NULL) AS unbounded
     FROM request_log`,
  );
  return row;
}

const run = async () => {
  // Rows recorded in this millisecond are left to the next run.
  await nextMillisecond(database);
  await Promise.all(rollups.map((rollup) => rollup.run()));
};

never('equals the rows: before, between and after the runs of two processes, to the last digit', async () => {
  await insert(2_000);
  await expectAllEqual();
  await run();
  expect(await storedCost()).toEqual(await loggedCost());
  await expectAllEqual();
  await Promise.all([insert(500), run(), insert(500), run(), insert(500)]);
  await expectAllEqual();
  await run();
  await run();
  expect(await storedCost()).toEqual(await loggedCost());
  await expectAllEqual();
});

it('reads sums in a time zone at a quarter of an hour too, and the rows of half hours within which days begin', async () => {
  await insert(2_000);
  await run();
  const counted = async () => ({
    ...(await totals.list(['day', 'model'], { limit: 500 }, 'Asia/Kathmandu')),
    as_of: null,
  });
  const before = await counted();
  await database.query(`DELETE FROM usage_slot WHERE ${SHARED('slot')}`);
  await database.query(`DELETE FROM request_log WHERE NOT ${SHARED('started_at')}`);
  expect(await counted()).toEqual(before);
});

it('counts no part of a day whose rows are dropped, in a time zone at a quarter of an hour', async () => {
  await insert(2_000);
  await run();
  const first = today - (DAYS - 1) * DAY_MS;
  await database.query(
    `DROP TABLE request_log_${new Date(first).toISOString().slice(0, 10).replaceAll('-', '')}`,
  );
  await expectEqual(['day'], 'Asia/Kathmandu');
  // A late row of a day that the log keeps no more.
  await createDays(database, first);
  await insertRow(database, new Date(first + 60_000));
  totals = new UsageTotals(pool, { usageRetentionDays: 800, requestLogRetentionDays: DAYS - 2 } as Settings);
  await expectEqual(['day'], 'Asia/Kathmandu');
  await expectEqual(['day'], 'Asia/Kathmandu', { to: new Date(today) });
});

never('equals the rows where clocks change, also at midnight and by half an hour', async () => {
  // Whenever this runs, these days are not too long ago.
  totals = new UsageTotals(pool, { usageRetentionDays: 800, requestLogRetentionDays: 36_500 } as Settings);
  const days = [
    '2026-09-26',
    '2026-09-27',
    '2026-10-03',
    '2026-10-04',
    '2026-10-24',
    '2026-10-25',
    '2026-10-31',
    '2026-11-01',
    '2026-11-02',
  ];
  // Else the roll-up goes through all hours since the first of them.
  await database.query(`UPDATE usage_rollup SET "cursor" = now() - interval '1 minute'`);
  for (const day of days) {
    await createDays(database, new Date(day));
    await database.query(
      `INSERT INTO request_log (id, started_at, team_id, key_id, provider, method, streamed, outcome, prompt_tokens)
       SELECT gen_random_uuid(), at, $2, $3, 'p', 'POST', false, 'completed', random() * 100
       FROM generate_series($1::timestamptz, $1::timestamptz + interval '23 hours 59 minutes', '7 minutes') AS at`,
      [`${day}T00:00:00Z`, TEAM, KEY],
    );
  }
  await run();
  const zones = [
    'Atlantic/Azores',
    'America/Havana',
    'Australia/Lord_Howe',
    'Europe/London',
    'Pacific/Chatham',
  ];
  for (const zone of zones)
    for (const interval of ['hour', 'day', 'month'] as const)
      await expectEqual([interval], zone, { from: new Date('2026-09-26T10:20:00Z') });
});

it('looks at no day without sums, whatever the range and the period', async () => {
  const daysOf = async (filter: RequestFilter) => {
    const { text, values } = daysSql(slotRange(filter)!, 'day', 'Europe/Berlin');
    return (await pool.queries.query<Days>(text, values)).rows[0]!.days;
  };
  const ever = { from: new Date('0001-01-01'), to: new Date('9999-12-31') };
  expect(await daysOf(ever)).toBe(0);
  await insert(500);
  await run();
  for (const filter of [{}, ever, { from: ever.from }, { to: ever.to }])
    expect(await daysOf(filter)).toBe(DAYS);
  expect(await daysOf({ from: new Date(today - DAY_MS) })).toBe(2);
  await expectEqual(['team', 'day'], 'Asia/Kolkata', { to: ever.to });
});

it('computes the sums of rows again that were changed after they were added, and of no others', async () => {
  await insert(1_000);
  await run();
  await database.query(
    `UPDATE request_log SET cost_usd = 1.000000001, model = 'late', recorded_at = date_trunc('milliseconds', clock_timestamp()),
       repaired_at = clock_timestamp() WHERE key_id = $1 AND model IS NULL`,
    [KEY],
  );
  await insert(10);
  // What this marks is not touched: its key was not changed.
  await database.query('UPDATE usage_slot SET request_bytes = 1 WHERE key_id <> $1', [KEY]);
  await run();
  expect(await storedCost()).toEqual(await loggedCost());
  await expectEqual(['day', 'model'], 'UTC', { key: KEY });
  const [marked] = await database.query<{ count: string }>(
    'SELECT count(*) FROM usage_slot WHERE key_id <> $1 AND request_bytes <> 1',
    [KEY],
  );
  expect(Number(marked!.count)).toBeLessThanOrEqual(10);
});

it('keeps the sums of a dropped day, also when a late row of it is changed', async () => {
  await insert(1_000);
  await run();
  const before = (await storedCost()) as { calls: string };
  const name = `request_log_${new Date(cut).toISOString().slice(0, 10).replaceAll('-', '')}`;
  await database.query(`DROP TABLE ${name}`);
  await createDays(database, cut);
  const late = await insertRow(database, new Date(cut + 60_000), { cost_usd: null });
  await run();
  expect(await storedCost()).toEqual({ ...before, calls: String(Number(before.calls) + 1) });
  await database.query(
    `UPDATE request_log SET cost_usd = 1, recorded_at = date_trunc('milliseconds', clock_timestamp()),
       repaired_at = clock_timestamp() WHERE id = $1`,
    [late],
  );
  await insert(10);
  await run();
  expect(await storedCost()).toMatchObject({ calls: String(Number(before.calls) + 11) });
});

const ADDED = ['unknown_calls', 'unknown_low_usd', 'unknown_high_usd', 'unbounded_calls'];

/** Adds all rows as a process of the version before does, which knows none of these columns. */
async function runAsBefore(): Promise<void> {
  const tables = ['usage_slot', 'usage_day'];
  for (const table of tables) await database.query(`CREATE TABLE old_${table} AS TABLE ${table}`);
  const [{ cursor }] = (await database.query('SELECT cursor FROM usage_rollup')) as [{ cursor: Date }];
  await run();
  for (const table of tables) {
    const kept = ADDED.map((name) =>
      name.endsWith('_usd') ? `${name} = old.${name}` : `${name} = COALESCE(old.${name}, 0)`,
    );
    await database.query(
      `UPDATE ${table} AS u SET ${kept.join(', ')}, unpriced_calls = u.unpriced_calls + u.unknown_calls - COALESCE(old.unknown_calls, 0)
       FROM ${table} AS now LEFT JOIN old_${table} AS old
         ON (old.slot, old.key_id, old.provider) = (now.slot, now.key_id, now.provider) AND old.model IS NOT DISTINCT FROM now.model
       WHERE u.ctid = now.ctid`,
    );
    await database.query(`DROP TABLE old_${table}`);
  }
  await database.query('UPDATE usage_rollup SET complete_cursor = $1', [cursor]);
}

it('completes what a process of the version before has added, however often it does', async () => {
  await insert(500);
  await run();
  for (let round = 0; round < 2; round++) {
    await insert(500);
    await runAsBefore();
    expect(await storedCost()).not.toEqual(await loggedCost());
    await run();
    expect(await storedCost()).toEqual(await loggedCost());
  }
  await expectAllEqual();
});

it('counts again the calls without a price that are billed by units, which the version before has left out', async () => {
  await insert(500);
  await run();
  const right = await database.query('SELECT * FROM usage_by_model_day ORDER BY day, provider, model');
  for (const table of ['usage_slot', 'usage_day'])
    await database.query(`UPDATE ${table} SET unpriced_calls = 0 WHERE unpriced_calls > 0`);
  await run();
  const before = await database.query<{ calls: number }>(
    'SELECT sum(unpriced_calls)::int AS calls FROM usage_day',
  );
  expect(before).toEqual([{ calls: 0 }]);
  await new RecountUnpricedUnits1798000385000().up({
    query: (sql: string) => database.query(sql),
  } as QueryRunner);
  await run();
  expect(await database.query('SELECT * FROM usage_by_model_day ORDER BY day, provider, model')).toEqual(
    right,
  );
  await expectAllEqual();
});

it('finds at night the unknown costs that a process of the version before has left out', async () => {
  await insert(500);
  await run();
  const yesterday = [new Date(today - DAY_MS), new Date(today)];
  for (const table of ['usage_slot', 'usage_day'])
    await database.query(
      `UPDATE ${table} SET unknown_calls = 0, unbounded_calls = 0, unknown_low_usd = NULL, unknown_high_usd = NULL
       WHERE slot >= $1 AND slot < $2`,
      yesterday,
    );
  expect(await storedCost()).not.toEqual(await loggedCost());
  await rollups[0]!.onNight();
  expect(await storedCost()).toEqual(await loggedCost());
});

never('adds nothing twice and misses nothing when its connection is killed at any moment', async () => {
  for (let round = 0; round < 10; round++) {
    await insert(200);
    const killed = (async () => {
      await timePasses(Math.random() * 20, 'the kill comes at different moments');
      await database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'postern-usage' AND datname = current_database()`,
      );
    })();
    await Promise.all([run(), killed]);
  }
  await run();
  await run();
  expect(await storedCost()).toEqual(await loggedCost());
  await expectAllEqual();
});

it('catches up with an existing log hour by hour, and skips the time before it', async () => {
  await insert(4_000);
  await database.query(
    `UPDATE request_log SET recorded_at = started_at + interval '1 second' WHERE started_at < now() - interval '3 hours'`,
  );
  await run();
  await run();
  expect(await storedCost()).toEqual(await loggedCost());
  await expectAllEqual();
});

it('adds up yesterday again if its days differ from its half hours', async () => {
  await insert(500);
  await run();
  await database.query('DELETE FROM usage_day WHERE slot = $1', [new Date(today - DAY_MS)]);
  await expect(storedCost()).rejects.toThrow();
  await rollups[0]!.onNight();
  expect(await storedCost()).toEqual(await loggedCost());
});

it('keeps the sums of all days that the log has', async () => {
  await insert(500);
  await run();
  await rollups[2]!.onNight();
  expect(await storedCost()).toEqual(await loggedCost());
  await expectAllEqual();
});

it('keeps a partition until its rows are added', async () => {
  const client = await pool.queries.connect();
  try {
    const [{ table }] = (await database.query(
      `SELECT inhrelid::regclass::text AS "table" FROM pg_inherits WHERE inhparent = 'request_log'::regclass ORDER BY 1`,
    )) as [{ table: string }];
    expect(await needed[0]!(client as never, table)).toBe(false);
    await insert(100);
    expect(await needed[0]!(client as never, table)).toBe(true);
    await run();
    expect(await needed[0]!(client as never, table)).toBe(false);
  } finally {
    client.release();
  }
});

it('finds at night what a clock that stepped back has hidden', async () => {
  await insert(500);
  await run();
  const yesterday = new Date(today - DAY_MS + 1_000);
  await database.query(
    `UPDATE request_log SET recorded_at = to_timestamp(0) WHERE started_at >= $1 AND started_at < $2`,
    [yesterday, new Date(today)],
  );
  for (const table of ['usage_slot', 'usage_day']) {
    await database.query(`DELETE FROM ${table} WHERE slot >= $1 AND slot < $2`, [
      new Date(today - DAY_MS),
      new Date(today),
    ]);
  }
  expect(await storedCost()).not.toEqual(await loggedCost());
  await rollups[0]!.onNight();
  expect(await storedCost()).toEqual(await loggedCost());
});

import { v7 as uuidv7 } from 'uuid';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import type { LedgerProcess } from './ledger-process.js';
import { Ledgers, rejection, usd, written } from './ledgers.js';
import { addRule, KEY, TEAM, USD } from './rules.js';

let ledgers: Ledgers;
let database: TestDatabase;
beforeEach(async () => {
  ledgers = await Ledgers.start();
  database = ledgers.database;
});
afterEach(() => ledgers.stop());

/** A call that starts at a time, and costs 1 USD. */
async function callAt(at: LedgerProcess, time: string): Promise<void> {
  const ticket = await at.admit(TEAM, KEY, usd(USD), uuidv7({ msecs: Date.parse(time) }));
  at.begin(ticket, KEY, TEAM).end(USD);
}

const spent = (rule: string) =>
  database.query<{ window_start: Date; spent: string }>(
    'SELECT window_start, spent FROM limit_meter WHERE rule_id = $1 ORDER BY window_start',
    [rule],
  );

it('admits calls in the first hour of a day whose midnight comes twice', async () => {
  const rule = await addRule(database, 'usd', 'day', 2n * USD, { time_zone: 'Atlantic/Azores' });
  const at = await ledgers.engine();
  // At 01:00 the clocks went back to 00:00, which Postgres takes for the midnight of that day.
  for (const time of ['2025-10-26T00:20Z', '2025-10-26T01:20Z']) await callAt(at, time);
  await written(at, 2);
  const start = { window_start: new Date('2025-10-26T01:00Z'), spent: String(2n * USD) };
  await eventually(async () => (await spent(rule))[0]?.spent === start.spent);
  expect(await spent(rule)).toEqual([start]);
  const { state } = await rejection(() =>
    at.admit(TEAM, KEY, usd(USD), uuidv7({ msecs: Date.parse('2025-10-26T00:40Z') })),
  );
  expect(state.resetsAt).toEqual(new Date('2025-10-27T01:00Z'));
});

it('limits the first hour after a day that had no midnight', async () => {
  const rule = await addRule(database, 'usd', 'day', 3n * USD, { time_zone: 'America/Santiago' });
  const at = await ledgers.engine();
  // That day began at 01:00, and had 23 hours.
  await callAt(at, '2025-09-08T02:50Z');
  for (let i = 0; i < 3; i++) await callAt(at, '2025-09-08T03:10Z');
  const { state } = await rejection(() =>
    at.admit(TEAM, KEY, usd(USD), uuidv7({ msecs: Date.parse('2025-09-08T03:20Z') })),
  );
  expect(state.resetsAt).toEqual(new Date('2025-09-09T03:00Z'));
  await written(at, 4);
  await eventually(async () => (await spent(rule)).length === 2);
  expect(await spent(rule)).toEqual([
    { window_start: new Date('2025-09-07T04:00Z'), spent: String(USD) },
    { window_start: new Date('2025-09-08T03:00Z'), spent: String(3n * USD) },
  ]);
});

it('tells in alerts when such a day ends', async () => {
  const rule = await addRule(database, 'usd', 'day', USD, { time_zone: 'America/Santiago' });
  await database.query(
    `INSERT INTO webhook (id, shown_url, events, format, sealed)
     VALUES (gen_random_uuid(), 'x', '{budget.exhausted}', 'standard', '')`,
  );
  // The next day without a midnight. It has 23 hours, which steps of a day may pass over.
  const [day] = await database.query<{ starts: Date; tomorrow: Date }>(
    `SELECT starts, (date_trunc('day', local) + interval '1 day') AT TIME ZONE 'America/Santiago' AS tomorrow
     FROM generate_series(now(), now() + interval '400 days', '6 hours') t
     CROSS JOIN LATERAL (SELECT date_trunc('day', t, 'America/Santiago') AS starts) day
     CROSS JOIN LATERAL (SELECT starts AT TIME ZONE 'America/Santiago' AS local) here
     WHERE local::time <> '00:00' ORDER BY t LIMIT 1`,
  );
  await database.query('INSERT INTO limit_meter (rule_id, window_start, spent) VALUES ($1, $2, $3)', [
    rule,
    day!.starts,
    String(USD),
  ]);
  const [event] = await database.query<{ resets_at: number }>(
    `SELECT (data->>'resets_at')::float8 AS resets_at FROM webhook_event`,
  );
  expect(new Date(event!.resets_at)).toEqual(day!.tomorrow);
});

/**
 * Quarters of an hour around each change of clocks in ten years, and around the midnights of the periods before and after
 * it. Zones with the same changes are tried once. A period is that of the settlement: see `startOfPeriod`.
 */
const QUARTERS = `
  WITH zone AS (
    SELECT name FROM pg_timezone_names CROSS JOIN generate_series('2026-01-01Z'::timestamptz, '2036-01-01Z', '14 days') t
    WHERE name !~ '^(posix|right)/' GROUP BY name HAVING count(DISTINCT t AT TIME ZONE name - t AT TIME ZONE 'UTC') > 1),
  -- The offsets of each day, to find the days on which one changes.
  day AS (
    SELECT name, t, t AT TIME ZONE name - t AT TIME ZONE 'UTC' AS shift
    FROM zone, generate_series('2026-01-01Z'::timestamptz, '2036-01-01Z', '1 day') t),
  change AS (
    SELECT name, (SELECT min(q) FROM generate_series(t, t + interval '1 day', '15 minutes') q
                  WHERE q AT TIME ZONE name - q AT TIME ZONE 'UTC' <> shift) AS at
    FROM (SELECT *, lead(shift) OVER (PARTITION BY name ORDER BY t) AS next FROM day) days WHERE shift <> next),
  one AS (
    SELECT min(name) AS name, changes
    FROM (SELECT name, array_agg(at ORDER BY at) AS changes, array_agg(at AT TIME ZONE name ORDER BY at) AS local
          FROM change GROUP BY name) zones
    GROUP BY changes, local),
  near AS (
    SELECT name, period, at FROM one, unnest(changes) at, (VALUES ('day'), ('week'), ('month')) p (period)
    UNION
    SELECT name, period, (date_trunc(period, at AT TIME ZONE name) + n * ('1 ' || period)::interval) AT TIME ZONE name
    FROM one, unnest(changes) at, (VALUES ('day'), ('week'), ('month')) p (period), generate_series(0, 2) n)
  SELECT DISTINCT name, period, q FROM near, generate_series(at - interval '75 minutes', at + interval '75 minutes', '15 minutes') q`;

never('gives each time of all time zones exactly one period, which is that of the settlement', async () => {
  const [found] = await database.query<Record<string, number>>(`
    WITH tried AS (
      SELECT *, date_trunc(period, q, name) AS settled
      FROM (${QUARTERS}) quarters CROSS JOIN LATERAL limit_window(period, name, q)),
    pair AS (
      SELECT *, lag(row(starts, begins, ends)) OVER quarter AS before, lag(ends) OVER quarter AS ended,
             lag(settled) OVER quarter AS settled_before, lag(q) OVER quarter = q - interval '15 minutes' AS is_next
      FROM tried WINDOW quarter AS (PARTITION BY name, period ORDER BY q))
    SELECT count(*)::int AS quarters, count(DISTINCT name)::int AS zones,
           (count(*) FILTER (WHERE starts <> settled))::int AS "named otherwise",
           (count(*) FILTER (WHERE begins > q OR ends <= q OR begins IS NULL OR ends IS NULL))::int AS outside,
           (count(*) FILTER (WHERE is_next AND settled = settled_before AND before <> row(starts, begins, ends)))::int AS split,
           (count(*) FILTER (WHERE is_next AND settled <> settled_before AND (ended <> q OR begins <> q)))::int AS "gaps or overlaps",
           (count(*) FILTER (WHERE is_next AND settled <> settled_before))::int AS ends,
           (count(*) FILTER (WHERE begins < starts))::int AS "begun before their midnight"
    FROM pair`);
  expect(found).toMatchObject({ 'named otherwise': 0, outside: 0, split: 0, 'gaps or overlaps': 0 });
  expect(found!.zones).toBeGreaterThan(20);
  expect(found!.ends).toBeGreaterThan(2_000);
  expect(found!['begun before their midnight']).toBeGreaterThan(0);
});

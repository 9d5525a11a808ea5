import pg from 'pg';
import type { DataSource } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { countWhatWasUsed, moveToTimeZone } from '../../src/limit-rules/log-charges.js';
import { INSTALLATION, type LimitOwner } from '../../src/limit-rules/limit-rule.entity.js';
import { type KeysDatabase, openKeysDatabase } from '../keys/data-source.js';
import { KEY, logRow, TEAM } from '../request-log/rows.js';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { addRule } from './rules.js';
import { insertCreatingDays } from './settled-rows.js';

let database: TestDatabase;
let dataSource: DataSource;
let opened: KeysDatabase;
let client: pg.Client;
beforeEach(async () => {
  opened = await openKeysDatabase();
  ({ database, dataSource } = opened);
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await opened.close();
});

const GROUP = uuidv7();
const HOUR_MS = 3_600_000;
/** A rule that has been there for long. */
const old = () => uuidv7({ msecs: Date.now() - 90 * 24 * HOUR_MS });
const charged = (at: number, subject = 'ann') =>
  logRow(at, {
    charge_usd: '1',
    cost_usd: '0.5',
    charge_tokens: 0,
    prompt_tokens: 3,
    limit_subject: subject,
  });

/** What the meters of the present periods have, and what the log says. */
const compare = () =>
  database.query<Record<string, string>>(`
    SELECT r.period, r.scope, s.subject, COALESCE(m.spent, 0)::text AS spent, (
      SELECT COALESCE(sum(CASE r.resource WHEN 'usd' THEN l.charge_usd * 1000000000 ELSE l.charge_tokens END), 0)::bigint::text
      FROM request_log l
      WHERE (r.period = 'total' OR date_trunc(r.period, l.started_at, r.time_zone) = date_trunc(r.period, now(), r.time_zone))
        AND (s.subject = '' OR l.limit_subject = s.subject)) AS logged
    FROM limit_rule r
    CROSS JOIN unnest(CASE WHEN r.scope LIKE '%end_user' THEN ARRAY['ann', 'ben'] ELSE ARRAY[''] END) s (subject)
    LEFT JOIN limit_meter m ON m.rule_id = r.id AND m.subject = s.subject AND m.window_start =
      CASE r.period WHEN 'total' THEN to_timestamp(0) ELSE date_trunc(r.period, now(), r.time_zone) END
    ORDER BY 1, 2, 3`);

never('keeps what was spent in the new periods, as the log has it, whatever the time zones', async () => {
  for (const period of ['day', 'week', 'month', 'total'])
    for (const [scope, resource] of [
      ['key', 'usd'],
      ['team_end_user', 'usd'],
      ['team', 'tokens'],
    ] as const)
      await addRule(database, resource, period, 1_000n * 10n ** 9n, {
        id: old(),
        scope,
        scope_id: scope === 'key' ? KEY : TEAM,
      });
  const now = Date.now();
  const monthStart = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth(), 1);
  const rows = [now, monthStart].flatMap((around) =>
    Array.from({ length: 80 }, (_, i) => around + (i - 60) * HOUR_MS).filter((at) => at <= now),
  );
  await insertCreatingDays(
    client,
    rows.map((at, i) => charged(at, i % 3 === 0 ? 'ben' : 'ann')),
  );
  for (const zone of [
    'Europe/London',
    'America/New_York',
    'Pacific/Kiritimati',
    'Pacific/Niue',
    'Asia/Kathmandu',
    'UTC',
  ]) {
    await moveToTimeZone(dataSource, zone);
    // What is written later is charged in the new periods only.
    await insertCreatingDays(client, [charged(now), charged(now, 'ben')]);
    for (const { spent, logged, ...what } of await compare())
      expect({ zone, spent, ...what }).toEqual({ zone, spent: logged, ...what });
  }
});

never('counts what a new budget has counted of its period once, whatever the time zones', async () => {
  const now = Date.now();
  const before = Array.from({ length: 60 }, (_, i) => now - 2 * HOUR_MS - i * HOUR_MS);
  // No budget has charged them, or another one has.
  await insertCreatingDays(client, [
    ...before.map((at) => logRow(at, { cost_usd: '0.5', prompt_tokens: 3 })),
    ...before.map((at) =>
      logRow(at, { cost_usd: '0.5', charge_usd: '0.5', charge_rules: '{7}', model: 'other' }),
    ),
  ]);
  await database.query("INSERT INTO team_group (id, name) VALUES ($1, 'dev')", [GROUP]);
  await database.query('INSERT INTO team (id, name, group_id) VALUES ($1, $2, $3)', [TEAM, 'search', GROUP]);
  const owners = { key: KEY, team: TEAM, group: GROUP, installation: INSTALLATION };
  for (const [owner, ownerId] of Object.entries(owners) as [LimitOwner, string][])
    for (const period of ['day', 'week', 'month'])
      for (const models of [null, ['OTHER*']]) {
        const id = await addRule(database, 'usd', period, 1_000n * 10n ** 9n, {
          scope: owner,
          ...(models === null && ['key', 'team'].includes(owner)
            ? { scope_id: ownerId }
            : { scope_id: uuidv7(), owner_id: ownerId }),
          models,
          filter: models === null ? '' : 'model=OTHER*',
        });
        await countWhatWasUsed(dataSource.manager, { owner, ownerId }, [id]);
      }
  // They were under way when the budgets were made.
  await insertCreatingDays(
    client,
    before.map((at) => logRow(at, { cost_usd: '64', duration_ms: 100 * HOUR_MS })),
  );
  const compared = () =>
    database.query<{ period: string; spent: string; logged: string }>(`
      SELECT r.period, r.scope, r.filter, COALESCE(m.spent, 0)::text AS spent, (
        SELECT COALESCE(sum(COALESCE(l.charge_usd, l.cost_usd) * 1000000000), 0)::bigint::text FROM request_log l
        WHERE date_trunc(r.period, l.started_at, r.time_zone) = date_trunc(r.period, now(), r.time_zone)
          AND l.cost_usd < 64 AND (r.models IS NULL OR l.model = 'other')) AS logged
      FROM limit_rule r
      LEFT JOIN limit_meter m ON m.rule_id = r.id AND m.window_start = date_trunc(r.period, now(), r.time_zone)
      ORDER BY 1, 2, 3`);
  const numbers = await database.query<{ numbers: string }>(
    `SELECT '{' || string_agg(nr::text, ',') || '}' AS numbers FROM limit_rule`,
  );
  for (const zone of [
    'America/New_York',
    'Pacific/Kiritimati',
    'Pacific/Niue',
    'Asia/Kathmandu',
    'Europe/London',
    'UTC',
  ]) {
    await moveToTimeZone(dataSource, zone);
    await insertCreatingDays(client, [
      logRow(Date.now(), {
        cost_usd: '0.5',
        charge_usd: '1',
        model: 'other',
        charge_rules: numbers[0]!.numbers,
      }),
    ]);
    for (const { spent, logged, ...what } of await compared())
      expect({ zone, spent, ...what }).toEqual({ zone, spent: logged, ...what });
  }
});

it('does not charge a new budget what was called before it was there, and keeps a reset', async () => {
  const now = Date.now();
  const created = await addRule(database, 'usd', 'day', 10n ** 12n, { id: uuidv7(), scope_id: KEY });
  const reset = await addRule(database, 'usd', 'month', 10n ** 12n, {
    id: old(),
    scope_id: TEAM,
    scope: 'team',
  });
  const others = await addRule(database, 'usd', 'total', 10n ** 12n, { id: old(), scope_id: KEY });
  // Calls of the day before in UTC, which are of today further west or east.
  await insertCreatingDays(
    client,
    Array.from({ length: 40 }, (_, i) => charged(now - i * HOUR_MS)),
  );
  await database.query('UPDATE limit_meter SET spent = 0 WHERE rule_id = $1', [created]);
  await database.query('UPDATE limit_meter SET credited = spent, alerted = 80 WHERE rule_id = $1', [reset]);
  for (const zone of ['Pacific/Niue', 'Pacific/Kiritimati']) await moveToTimeZone(dataSource, zone);
  const present = await database.query<{ rule_id: string; spent: string; credited: string; alerted: number }>(
    `SELECT m.* FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
     WHERE window_start = CASE r.period WHEN 'total' THEN to_timestamp(0) ELSE date_trunc(r.period, now(), r.time_zone) END`,
  );
  const of = (rule: string) => present.find(({ rule_id }) => rule_id === rule);
  expect(of(created)?.spent ?? '0').toBe('0');
  expect(of(reset)).toMatchObject({ alerted: 80 });
  expect(BigInt(of(reset)!.credited)).toBeGreaterThan(0n);
  expect(of(others)!.spent).toBe(String(20n * 10n ** 9n));
});

/** How many statements wait for a table of limits. */
async function waitingNow(): Promise<number> {
  const found = await database.query(
    `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
     WHERE d.datname = current_database() AND NOT granted
       AND relation IN ('limit_rule'::regclass, 'limit_meter'::regclass)`,
  );
  return found.length;
}
const waiting = (count: number) => eventually(async () => (await waitingNow()) >= count);

never('takes along what was charged in parts to a meter whose row is locked at the moment', async () => {
  await addRule(database, 'usd', 'day', 10n ** 12n, {
    ...{ id: old(), scope: 'group', scope_id: GROUP, rank: 1 },
  });
  const [rule] = await database.query<{ nr: string }>('SELECT nr FROM limit_rule');
  const late = new pg.Client({ connectionString: database.url });
  await late.connect();
  const charge = () => insertCreatingDays(late, [{ ...charged(Date.now()), charge_rules: `{${rule!.nr}}` }]);
  await charge();
  await database.query('SELECT limit_fold()');
  await client.query('BEGIN');
  await client.query('SELECT FROM limit_meter FOR UPDATE');
  await charge();
  let isOver = false;
  const moving = moveToTimeZone(dataSource, 'Asia/Tokyo').finally(() => (isOver = true));
  await eventually(async () => isOver || (await waitingNow()) > 0);
  await client.query('COMMIT');
  await moving;
  await late.end();
  expect(await compare()).toEqual([expect.objectContaining({ spent: '1000000000', logged: '1000000000' })]);
});

never('neither misses nor doubles what is charged meanwhile', async () => {
  await addRule(database, 'usd', 'day', 10n ** 12n, { id: old(), scope_id: KEY });
  await insertCreatingDays(client, [charged(Date.now())]);
  await client.query('BEGIN');
  await insertCreatingDays(client, [charged(Date.now())]);
  const moving = Promise.all([
    moveToTimeZone(dataSource, 'Asia/Tokyo'),
    moveToTimeZone(dataSource, 'Asia/Tokyo'),
  ]);
  await waiting(2);
  const late = new pg.Client({ connectionString: database.url });
  await late.connect();
  const writing = insertCreatingDays(late, [charged(Date.now())]);
  await waiting(3);
  await client.query('COMMIT');
  expect((await moving).flat()).toEqual(['UTC']);
  await writing;
  await late.end();
  expect(await compare()).toEqual([expect.objectContaining({ spent: '1500000000', logged: '1500000000' })]);
});

never('after a reset, a budget has no more than its whole amount', async () => {
  await addRule(database, 'usd', 'day', 1_000n * 10n ** 9n, { id: old(), scope: 'key', scope_id: KEY });
  const now = Date.now();
  await insertCreatingDays(
    client,
    Array.from({ length: 50 }, (_, i) => charged(now - i * HOUR_MS)),
  );
  await database.query('UPDATE limit_meter SET credited = spent');
  for (const zone of ['Etc/GMT+12', 'Etc/GMT+6', 'UTC', 'Etc/GMT-6', 'Etc/GMT-12', 'UTC'])
    await moveToTimeZone(dataSource, zone);
  expect(await database.query('SELECT FROM limit_meter WHERE credited > spent')).toEqual([]);
});

import { Logger } from '@nestjs/common';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { finalizeCharge } from '../../src/request-log/charges.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { KEY as LOG_KEY, logRow, TEAM as LOG_TEAM } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { never } from '../support/never.js';
import { addRule, chargedUsd, meterOf } from './rules.js';
import { insertBatch, insertCreatingDays, insertRows } from './settled-rows.js';

let database: TestDatabase;
let client: pg.Client;
beforeEach(async () => {
  Logger.overrideLogger(false);
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const charged = (columns: Partial<LogRow> = {}, at = Date.now()) =>
  logRow(at, { charge_usd: '1', cost_usd: '0.250000001', ...columns });
const rule = (resource: string, period: string, columns = {}) =>
  addRule(database, resource, period, 1_000_000_000_000n, { scope_id: LOG_KEY, ...columns });

never('adds the charge of a new row to what is spent, once, however often the row is written', async () => {
  const id = await rule('usd', 'month');
  const row = charged();
  for (let i = 0; i < 3; i++) await insertCreatingDays(client, [row, charged()]);
  expect((await meterOf(database, id)).spent).toBe(4n * 250_000_001n);
  expect(await chargedUsd(database)).toBe(4n * 250_000_001n);
});

it('writes rows as new, and as any once one of them is there', async () => {
  const id = await rule('usd', 'month');
  const row = charged({ outcome: 'interrupted', status: null });
  const statements = jest.spyOn(client, 'query');
  const names = () =>
    statements.mock.calls.splice(0).map(([query]) => (query as unknown as { name: string }).name);
  await insertCreatingDays(client, [row, charged()], true);
  expect(names()).toEqual(['insert_and_settle_request_log_new']);
  await insertCreatingDays(client, [{ ...row, outcome: 'completed' }, charged()], true);
  expect(names()).toEqual(['insert_and_settle_request_log_new', 'insert_and_settle_request_log']);
  statements.mockRestore();
  const outcomes = await database.query('SELECT outcome FROM request_log');
  expect(outcomes).toEqual(Array(3).fill({ outcome: 'completed' }));
  expect((await meterOf(database, id)).spent).toBe(await chargedUsd(database));
});

it('takes a statement that another user of its session has prepared for no error of the settlement', async () => {
  const id = await rule('usd', 'month');
  const fatal = jest.spyOn(Logger.prototype, 'fatal');
  await client.query('PREPARE insert_and_settle_request_log AS SELECT 1');
  await expect(insertCreatingDays(client, [charged()])).rejects.toMatchObject({ code: '42P05' });
  expect(await database.query('SELECT FROM request_log')).toEqual([]);
  // The next attempt has a connection of its own.
  await client.query('DEALLOCATE insert_and_settle_request_log');
  await insertCreatingDays(client, [charged()]);
  expect((await meterOf(database, id)).spent).toBe(250_000_001n);
  expect(fatal).not.toHaveBeenCalled();
  fatal.mockRestore();
});

never(
  'charges an interrupted call what it had reserved, and keeps that when the row is corrected',
  async () => {
    const id = await rule('usd', 'total');
    const row = charged({
      outcome: 'interrupted',
      cost_usd: null,
      status: null,
      prompt_tokens: null,
      completion_tokens: null,
    });
    await insertCreatingDays(client, [row]);
    await insertCreatingDays(client, [{ ...row, outcome: 'completed', cost_usd: '0.5', status: 200 }]);
    const [stored] = await database.query<Record<string, unknown>>('SELECT * FROM request_log');
    expect(stored).toMatchObject({
      outcome: 'completed',
      cost_usd: '0.500000000',
      charge_usd: '1.000000000',
    });
    expect(stored!.repaired_at).not.toBeNull();
    expect((await meterOf(database, id)).spent).toBe(1_000_000_000n);
  },
);

never('counts a call in the period in which it started, in the time zone of the budget', async () => {
  const id = await rule('usd', 'week', { time_zone: 'America/New_York' });
  // Sunday evening in New York is Monday in UTC.
  const sunday = Date.parse('2026-11-16T04:00:00Z');
  await insertCreatingDays(client, [charged({}, sunday), charged({}, sunday + 3_600_000)]);
  const rows = await database.query<{ window_start: Date; spent: string }>(
    'SELECT window_start, spent FROM limit_meter WHERE rule_id = $1 ORDER BY 1',
    [id],
  );
  expect(rows.map(({ window_start, spent }) => [window_start.toISOString(), spent])).toEqual([
    ['2026-11-09T05:00:00.000Z', '250000001'],
    ['2026-11-16T05:00:00.000Z', '250000001'],
  ]);
});

never(
  'charges the budgets of the key, its team and its end user in USD and tokens, and no rate',
  async () => {
    const ids = [
      await rule('usd', 'day'),
      await rule('tokens', 'day'),
      await rule('usd', 'month', { scope: 'team', scope_id: LOG_TEAM }),
      await rule('tokens', 'total', { scope: 'team_end_user', scope_id: LOG_TEAM }),
    ];
    await rule('tokens', 'minute');
    await rule('usd', 'day', { scope_id: uuidv7() });
    await insertCreatingDays(client, [
      charged({ charge_tokens: 5_000, limit_subject: 'ann' }),
      charged({ charge_tokens: 5_000, limit_subject: 'ben' }),
      charged(),
      logRow(Date.now()),
    ]);
    const rows = await database.query<{ rule_id: string; subject: string; spent: string }>(
      'SELECT rule_id, subject, spent FROM limit_meter ORDER BY rule_id, subject',
    );
    expect(rows.map(({ rule_id, subject, spent }) => [ids.indexOf(rule_id), subject, spent])).toEqual([
      [0, '', '750000003'],
      [1, '', '32'],
      [2, '', '750000003'],
      [3, 'ann', '16'],
      [3, 'ben', '16'],
    ]);
  },
);

it('leaves nothing of periods that ended a week ago, and announces nothing of a row that comes later', async () => {
  await database.query(
    `INSERT INTO webhook (id, shown_url, events, format, sealed)
     VALUES (gen_random_uuid(), 'x', '{budget.threshold,budget.exhausted}', 'standard', '')`,
  );
  const id = await addRule(database, 'usd', 'day', 100, { scope_id: LOG_KEY, alert_at: [50] });
  const total = await rule('usd', 'total');
  const daysAgo = (days: number) => Date.now() - days * 86_400_000;
  for (const days of [0, 7, 9]) await insertCreatingDays(client, [charged({}, daysAgo(days))]);
  const meters = () => database.query('SELECT FROM limit_meter WHERE rule_id = $1', [id]);
  const events = () => database.query('SELECT FROM webhook_event');
  expect(await events()).toHaveLength(4);
  await database.query('SELECT limit_sweep()');
  expect(await meters()).toHaveLength(2);
  expect((await meterOf(database, total)).spent).toBe(3n * 250_000_001n);
  await insertCreatingDays(client, [charged({}, daysAgo(9))]);
  expect(await meters()).toHaveLength(3);
  expect(await events()).toHaveLength(4);
  await database.query('SELECT limit_sweep()');
  expect(await meters()).toHaveLength(2);
});

it('is prepared only if a budget applies to a row', () => {
  expect(insertRows([logRow(Date.now())])).toMatchObject({ name: 'insert_request_log' });
  expect(insertRows([logRow(Date.now())]).text).not.toContain('charge_usd');
  expect(insertRows([logRow(Date.now()), charged()])).toMatchObject({
    name: 'insert_and_settle_request_log',
  });
});

never('never makes a row unacceptable: what cannot be settled with the others is settled alone', async () => {
  const good = await rule('usd', 'month');
  const bad = await rule('usd', 'day', { scope: 'team', scope_id: LOG_TEAM });
  await database.query(`
    CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '22003'; END $$;
    CREATE TRIGGER reject BEFORE INSERT OR UPDATE ON limit_meter FOR EACH ROW WHEN (NEW.rule_id = '${bad}')
      EXECUTE FUNCTION reject()`);
  const other = uuidv7();
  const rows = [charged(), charged({ team_id: other }), charged({ team_id: other })];
  let settled = 0;
  await insertBatch(client, rows, {
    reject: () => Promise.reject(new Error('a row was rejected')),
    settled: (count) => (settled += count),
  });
  expect(settled).toBe(3);
  expect(await database.query('SELECT FROM request_log')).toHaveLength(3);
  // The row whose team's budget is broken is charged nowhere; the two others are.
  expect((await meterOf(database, good)).spent).toBe(2n * 250_000_001n);
  // Writing them again settles nothing twice.
  await insertCreatingDays(client, rows);
  expect((await meterOf(database, good)).spent).toBe(2n * 250_000_001n);
});

it('stays at its highest value rather than overflow', async () => {
  const id = await rule('tokens', 'total');
  await insertCreatingDays(client, [charged({ charge_usd: null, charge_tokens: 5 })]);
  await database.query(`UPDATE limit_meter SET spent = 4000000000000000000 - 1`);
  await insertCreatingDays(client, [charged({ charge_usd: null, charge_tokens: 5 })]);
  expect((await meterOf(database, id)).spent).toBe(4_000_000_000_000_000_000n);
});

never.each([
  ['its cost', {}, '0.250000001', 16],
  ['its tokens as the provider counts them', { prompt_tokens: 3, completion_tokens: null }, '0.250000001', 3],
  [
    'what it reserved, if its usage is unknown',
    { cost_usd: null, prompt_tokens: null, completion_tokens: null },
    '1',
    99,
  ],
  [
    'nothing, if the provider rejected it without usage',
    { status: 429, cost_usd: null, prompt_tokens: null, completion_tokens: null },
    '0',
    0,
  ],
  [
    'what it reserved, if the provider did not respond in time',
    {
      status: 504,
      outcome: 'upstream_timeout',
      cost_usd: null,
      prompt_tokens: null,
      completion_tokens: null,
    } as const,
    '1',
    99,
  ],
  [
    'nothing, if the provider was not reached',
    {
      status: 502,
      outcome: 'upstream_error',
      error_code: 'upstream_unreachable',
      cost_usd: null,
      prompt_tokens: null,
      completion_tokens: null,
    } as const,
    '0',
    0,
  ],
  ['nothing, if its response was a stored one', { outcome: 'replayed' } as const, '0', 0],
] as const)('charges a call %s', (_, columns, usd, tokens) => {
  const row = charged({ charge_tokens: 99, ...columns });
  for (let i = 0; i < 2; i++) expect(finalizeCharge(row)).toBe(true);
  expect([row.charge_usd, row.charge_tokens]).toEqual([usd, tokens]);
});

import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { limitedForFile } from './limited-gateway.js';
import { rejectionOf } from './rejection.js';

setPatience(1, 'a look-up');
const limited = limitedForFile();
const admin = <T>(method: string, path: string, body?: object) =>
  limited.postern.admin<T>(method, path, body);

never('a new budget counts 20,000 calls of its month', async () => {
  const key = await limited.issue({});
  expect((await limited.send(key.key, { model: 'm' })).status).toBe(200);
  const { database } = limited.postern;
  await eventually(
    async () => (await database.query('SELECT FROM request_log WHERE key_id = $1', [key.id])).length === 1,
  );
  const columns = await database.query<{ names: string }>(
    `SELECT string_agg(quote_ident(attname), ', ') AS names FROM pg_attribute
     WHERE attrelid = 'request_log'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'id' AND attgenerated = ''`,
  );
  const { names } = columns[0]!;
  await database.query(
    `INSERT INTO request_log (id, ${names}) SELECT gen_random_uuid(), ${names} FROM request_log, generate_series(1, 19999)
     WHERE key_id = $1`,
    [key.id],
  );
  await admin('PATCH', `/keys/${key.id}`, {
    budgets: [
      { usd: '500', period: 'month', models: ['m'] },
      { tokens: 100_000_000, period: 'month' },
    ],
    each_end_user: { budgets: [{ usd: '5', period: 'month' }] },
  });
  const { data } = await admin<{ data: { used: string; scope: string }[] }>('GET', `/limits?key=${key.id}`);
  expect(data.map(({ scope, used }) => [scope, used]).sort()).toEqual([
    ['key', '22.00'],
    ['key', '4000000'],
    ['key_end_user', '0.00'],
  ]);
});

it('a new budget that would count for too long is not made, and begins at 0 if that is asked for', async () => {
  const { id } = await limited.issue({});
  const other = new pg.Client({ connectionString: limited.postern.database.url });
  await other.connect();
  try {
    await other.query('BEGIN');
    await other.query('LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE');
    const budget = { usd: '5', period: 'month' };
    expect(await rejectionOf(() => admin('PATCH', `/keys/${id}`, { budgets: [budget] }))).toMatch(
      /400 .*takes too long; give \\"count_from\\": \\"now\\"/,
    );
    await admin('PATCH', `/keys/${id}`, { budgets: [{ ...budget, count_from: 'now' }] });
  } finally {
    await other.end();
  }
});

import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { logRow } from '../request-log/rows.js';
import { limitedForFile } from './limited-gateway.js';
import { rejectionOf } from './rejection.js';
import { insertCreatingDays } from './settled-rows.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';

setPatience(1, 'a look-up');
const limited = limitedForFile();
const preview = (owner_id: string, budgets: object[]) =>
  limited.postern.admin<{ data: { calls: number; rejected: number }[] }>('POST', '/limits/preview', {
    owner: 'key',
    owner_id,
    budgets,
  });

never('counts the attempts of a call as one call, and each in the budgets of its provider', async () => {
  const { id, team_id } = await limited.issue({});
  const client = new pg.Client({ connectionString: limited.postern.database.url });
  await client.connect();
  try {
    const now = Date.now();
    const rows = Array.from({ length: 10 }, (_, i) => {
      const first = uuidv7({ msecs: now - 60_000 + i * 1_000 });
      const used = { key_id: id, team_id, cost_usd: '1' };
      return [
        { ...logRow(now - 60_000 + i * 1_000, { ...used, provider: 'first' }), id: first },
        logRow(now - 59_500 + i * 1_000, { ...used, provider: 'second', call_id: first }),
      ];
    });
    await insertCreatingDays(client, rows.flat());
    const total = { usd: '6', period: 'total' };
    expect((await preview(id, [total, { ...total, providers: ['second'] }])).data).toEqual([
      { calls: 10, rejected: 7 },
      { calls: 10, rejected: 4 },
    ]);
  } finally {
    await client.end();
  }
});

it('says what to do if the log is too long', async () => {
  const { id } = await limited.issue({});
  const other = new pg.Client({ connectionString: limited.postern.database.url });
  await other.connect();
  try {
    await other.query('BEGIN');
    await other.query('LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE');
    expect(await rejectionOf(() => preview(id, [{ usd: '5', period: 'month' }]))).toMatch(
      /400 .*takes too long; try fewer at once, a day in place of a month/,
    );
  } finally {
    await other.end();
  }
});

import pg from 'pg';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { timePasses } from '../support/eventually.js';
import { setPatience } from '../support/patience.js';
import { insertRow } from '../request-log/rows.js';

setPatience(1, 'a connection to Postgres');

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const GROUPS = ['team', 'key', 'model', 'provider', 'team,day', 'key,day', 'model,hour', 'provider,hour'];

it('answers all panels of a page, although a roll-up keeps them waiting for longer than connecting may take', async () => {
  await insertRow(postern.database, new Date());
  const rollup = new pg.Client({ connectionString: postern.database.url });
  await rollup.connect();
  // What reads the sums waits for it, as for a slow one.
  await rollup.query('BEGIN; LOCK TABLE usage_slot, usage_day IN ACCESS EXCLUSIVE MODE');
  const panels = GROUPS.flatMap((groups) => [groups, groups]).map((groups) =>
    postern.admin<{ totals: { calls: number } }>('GET', `/usage?group_by=${groups}`),
  );
  const all = Promise.all(panels);
  all.catch(() => {});
  await timePasses(7_000, 'a query that waits for a connection would be given up after 5 s');
  await rollup.query('COMMIT');
  await rollup.end();
  expect((await all).map(({ totals }) => totals.calls)).toEqual(panels.map(() => 1));
});

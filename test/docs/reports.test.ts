import pg from 'pg';
import { insertRow } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { read } from './pages.js';

/** The SQL examples of a page. */
const examples = (page: string) => [...read(page).matchAll(/```sql\n([^]*?)```/g)].map(([, sql]) => sql!);

// Roles belong to the whole cluster.
const ROLE = `postern_reports_${process.pid}`;
const [recipe, forGrafana] = examples('docs/guides/reports.md').map((sql) =>
  sql.replaceAll('postern_reports', ROLE),
);

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  await database.query(recipe!);
  await insertRow(database, new Date());
  // A day that gets its partition only now.
  await insertRow(database, new Date('2031-01-01T00:00:00Z'), { status: 429 });
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(`SET ROLE ${ROLE}`);
});
afterAll(async () => {
  await client.end();
  await database.query(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
  await database.drop();
});

it.each([
  ['request_log', 2],
  ['usage_by_team_day', 2],
  ['usage_by_key_day', 2],
  ['usage_by_model_day', 2],
  ['usage_half_hour', 2],
  ['cost_by_team_month', 2],
  ['cost_by_user_day', 2],
  ['errors_by_key_hour', 1],
])('the role of reports.md reads %s', async (table, rows) => {
  expect((await client.query(`SELECT * FROM ${table}`)).rows).toHaveLength(rows);
});

it.each(['gateway_key_secret', 'provider', 'idempotency_record', 'audit_log'])(
  'it does not read %s',
  async (table) => {
    await expect(client.query(`SELECT * FROM ${table}`)).rejects.toThrow('permission denied');
  },
);

it('it changes nothing, also if it begins a transaction that could', async () => {
  await client.query('BEGIN READ WRITE');
  await expect(client.query('DELETE FROM request_log')).rejects.toThrow('permission denied');
  await client.query('ROLLBACK');
});

it('the query for Grafana and those of the other guides run', async () => {
  const filter = forGrafana!.replace(/\$__timeFilter\((\S+)\)/, "$1 > now() - interval '1 day'");
  expect((await client.query(filter)).rows).toEqual([]);
  for (const page of ['docs/guides/monitoring.md', 'docs/guides/request-log.md'])
    for (const sql of examples(page)) await client.query(sql);
});

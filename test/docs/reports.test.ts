import pg from 'pg';
import { insertRow } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { read } from './pages.js';

/** The SQL examples of a page. */
const examples = (page: string) => [...read(page).matchAll(/```sql\n([^]*?)```/g)].map(([, sql]) => sql!);

// Roles belong to the whole cluster.
const ROLE = `postern_reports_${process.pid}`;
const GATEWAY_ROLE = `postern_gateway_${process.pid}`;
const [recipe, locks, forGrafana] = examples('docs/guides/reports.md').map((sql) =>
  sql.replaceAll('postern_reports', ROLE).replace("TO postern'", `TO ${GATEWAY_ROLE}'`),
);

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  await database.query(recipe!);
  await insertRow(database, new Date(), { end_user: 'user-7', prompt_tokens: 1, completion_tokens: 2 });
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
  ['usage_by_group_day', 2],
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
  for (const sql of [
    'DELETE FROM request_log',
    'INSERT INTO team (id, name) VALUES (gen_random_uuid(), $$mine$$)',
    'INSERT INTO request_log SELECT * FROM request_log',
    'UPDATE price SET input = 0',
    'UPDATE usage_half_hour SET calls = 0',
    'CREATE TABLE mine ()',
  ]) {
    await client.query('SAVEPOINT before');
    await expect(client.query(sql)).rejects.toThrow(/permission denied|cannot update view/);
    await client.query('ROLLBACK TO before');
  }
  await client.query('ROLLBACK');
});

it('it takes no advisory lock once the gateway alone may, which still can', async () => {
  await database.query(`CREATE ROLE ${GATEWAY_ROLE}`);
  await client.query('SELECT pg_advisory_xact_lock(1)');
  await database.query(locks!);
  const taking = await database.query<{ call: string }>(`
    SELECT p.oid::regproc || '(' || array_to_string(array_fill(1, ARRAY[pronargs::int]), ',') || ')' AS call FROM pg_proc p
    WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ 'advisory' AND proname !~ 'unlock'`);
  expect(taking).toHaveLength(16);
  for (const { call } of taking)
    await expect(client.query(`SELECT ${call}`)).rejects.toThrow('permission denied for function');
  await client.query(`SET ROLE ${GATEWAY_ROLE}`);
  for (const { call } of taking) await client.query(`SELECT ${call}`);
  await client.query(`SELECT pg_advisory_unlock_all(); SET ROLE ${ROLE}`);
  await database.query(`DROP OWNED BY ${GATEWAY_ROLE}; DROP ROLE ${GATEWAY_ROLE}`);
});

describe('the dashboard of costs for Grafana', () => {
  const { panels } = JSON.parse(read('deploy/grafana/costs.json')) as {
    panels: { title: string; description: string; targets: { rawSql: string }[] }[];
  };

  it.each(panels)('has rows for the panel $title', async ({ description, targets }) => {
    expect(description).not.toBe('');
    for (const { rawSql } of targets) {
      // As Grafana expands its macros.
      const [from, to] = [-86_400_000, 86_400_000].map(
        (ms) => `'${new Date(Date.now() + ms).toISOString()}'`,
      );
      const sql = rawSql
        .replaceAll('$__timeFrom()', from!)
        .replaceAll('$__timeTo()', to!)
        .replaceAll(/\$__timeFilter\((\S+)\)/g, `$1 BETWEEN ${from} AND ${to}`);
      expect(sql).not.toContain('$__');
      const { rows } = await client.query<Record<string, unknown>>(sql);
      expect(rows).toHaveLength(1);
      // Not of the day outside of the range.
      if ('calls' in rows[0]!) expect(Number(rows[0].calls)).toBe(1);
      if ('cost' in rows[0]!) expect(rows[0].cost).toBeNull();
    }
  });
});

it('the query for Grafana and those of the other guides run', async () => {
  const filter = forGrafana!.replace(/\$__timeFilter\((\S+)\)/, "$1 > now() - interval '1 day'");
  expect((await client.query(filter)).rows).toEqual([]);
  for (const page of ['docs/guides/monitoring.md', 'docs/guides/request-log.md'])
    for (const sql of examples(page)) await client.query(sql);
});

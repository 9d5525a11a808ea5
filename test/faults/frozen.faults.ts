import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { Replicas } from '../support/replicas.js';

/** Held by the test: whoever changes one of the tables waits for it. */
const GATE = 42;

let replicas: Replicas;
let gate: pg.Client;
beforeAll(async () => {
  replicas = await Replicas.start(1);
  await replicas.database.query(
    `CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN PERFORM pg_advisory_xact_lock(${GATE}); RETURN NULL; END $$`,
  );
  gate = new pg.Client(replicas.database.url);
  await gate.connect();
});
afterAll(async () => {
  await gate.end();
  await replicas.stop();
});

const change = (name: string) =>
  fetch(`${replicas.all[0]!.url}/admin/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ team: 'default', name, limits: { requests_per_minute: 5 } }),
  }).then(({ status }) => status);

it.each([
  { what: 'the sums of usage', table: 'usage_rollup', start: () => Promise.resolve(200) },
  { what: 'limits', table: 'limit_rule', start: () => change('frozen') },
])('a replica that freezes while it changes $what keeps no lock', async ({ table, start }) => {
  const { database, all } = replicas;
  const { process } = all[0]!.gateway;
  const count = async (condition: string) => {
    const [row] = await database.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM pg_stat_activity
       WHERE datname = current_database() AND application_name LIKE 'postern%' AND ${condition}`,
    );
    return row!.n;
  };
  await gate.query('SELECT pg_advisory_lock($1)', [GATE]);
  await database.query(
    `CREATE TRIGGER gate AFTER INSERT OR UPDATE ON ${table} EXECUTE FUNCTION wait_at_gate()`,
  );
  const started = start();
  await eventually(async () => (await count(`wait_event = 'advisory'`)) > 0);
  process.signal('SIGSTOP');
  await gate.query('SELECT pg_advisory_unlock($1)', [GATE]);
  await eventually(async () => (await count(`state = 'idle in transaction'`)) > 0);

  await eventually(async () => (await count(`state LIKE 'idle in transaction%'`)) === 0);
  // Needs the strongest lock of the table.
  await database.query(`DROP TRIGGER gate ON ${table}`);

  // It notices, and works on.
  process.signal('SIGCONT');
  expect([200, 503]).toContain(await started);
  expect(await change(`after ${table}`)).toBe(201);
  const moved = `SELECT 1 FROM usage_rollup WHERE "cursor" > now() - interval '1 minute'`;
  await eventually(async () => (await database.query(moved)).length === 1);
});

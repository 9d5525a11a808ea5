import { KnownEnds } from '../../src/database/known-ends/known-ends.js';
import { Regressions } from '../../src/regressions/regressions.service.js';
import { sendTo, startUsageProvider } from '../limits/limited-gateway.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import type { RawProvider } from '../support/raw-provider.js';
import { type Executed, executedStatements } from '../support/executed-statements.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';

const CALLS = 200;
/** Of what a process asks Postgres by itself, every 2 seconds at most. */
const SOME = CALLS / 4;

let database: TestDatabase;
let relay: TcpForwarder;
/** What the gateway's connections have executed. */
const executed: Executed[] = [];
let provider: RawProvider;
let postern: TestGateway;
beforeAll(async () => {
  database = await createDatabase();
  relay = await TcpForwarder.to(database.url, () => executedStatements(executed));
  await relay.open();
  provider = await startUsageProvider({ input: 1, output: 1 });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, DATABASE_URL: relay.url }, database);
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
  await relay.close();
  await database.drop();
});

function countsOf(statements: readonly Executed[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { text } of statements) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** Rows that scans of a table have read. */
async function scanned(table: string): Promise<number> {
  const [row] = await database.query<{ rows: number }>(
    'SELECT (seq_tup_read + idx_tup_fetch)::float8 AS rows FROM pg_stat_user_tables WHERE relname = $1',
    [table],
  );
  return row!.rows;
}

it('cause no statement but those that write their rows, and nothing is asked of what a failover may have lost', async () => {
  const call = () => sendTo(postern.url, postern.key, { model: 'm' });
  await postern.row((await call()).id);
  const regressions = postern.gateway.app.get(Regressions);
  await eventually(() => regressions.isAdmitting);
  const asked = [
    jest.spyOn(postern.gateway.app.get(KnownEnds), 'reject'),
    jest.spyOn(regressions, 'admitted'),
  ];
  const before = executed.length;
  for (let i = 0; i < CALLS / 20; i++)
    for (const { status } of await Promise.all(Array.from({ length: 20 }, call))) expect(status).toBe(200);
  await eventually(async () => (await postern.rowCount()) > CALLS);
  const isPoll = ({ text, application }: Executed) =>
    application !== 'postern-log' && text.includes('UPDATE gateway_run');
  await eventually(() => executed.slice(before).some(isPoll));

  const since = executed.slice(before);
  const log = since.filter(({ application }) => application === 'postern-log');
  // One statement for each batch, and none beside it.
  expect(log.length).toBeGreaterThan(0);
  for (const { text } of log) {
    expect(text).toContain('INSERT INTO request_log');
    expect(text).toContain('UPDATE gateway_run');
  }
  const others = countsOf(since.filter((one) => !log.includes(one)));
  expect([...others].filter(([, count]) => count >= SOME)).toEqual([]);
  // A key is read again once in a while.
  for (const { mock } of asked) expect(mock.calls.length).toBeLessThan(SOME);
});

it('polls read neither the runs that have ended nor the older entries of the audit log', async () => {
  const ROWS = 20_000;
  await database.query(
    `INSERT INTO gateway_run SELECT gen_random_uuid(), 1, now() - i * interval '20 s', NULL FROM generate_series(1, ${ROWS}) i`,
  );
  await database.query(
    `INSERT INTO audit_log (id, at, actor, action, subject_type, subject_id, subject_name)
     SELECT gen_random_uuid(), now() - i * interval '1 min', 'a', 'created', 'team', gen_random_uuid(), 'a'
     FROM generate_series(100, ${ROWS + 100}) i`,
  );
  for (const table of ['gateway_run', 'audit_log']) await database.query(`ANALYZE ${table}`);
  const polls = () => executed.filter(({ text }) => text.includes('row_to_json(audit_log)')).length;
  const fivePolls = async () => {
    const enough = polls() + 5;
    await eventually(() => polls() >= enough);
  };
  await fivePolls();
  const before = [await scanned('gateway_run'), await scanned('audit_log')];
  await fivePolls();
  const after = [await scanned('gateway_run'), await scanned('audit_log')];
  for (const i of [0, 1]) expect(after[i]! - before[i]!).toBeLessThan(ROWS);
});

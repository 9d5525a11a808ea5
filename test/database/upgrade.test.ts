import pg from 'pg';
import { DataSource } from 'typeorm';
import { Initial1795000000000 } from '../../migrations/1795000000000-initial.js';
import { NoDefaultPartition1795000006000 } from '../../migrations/1795000006000-no-default-partition.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { FUNCTIONS } from '../../src/database/functions.js';
import { migrate } from '../../src/database/migrate.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { FULL } from '../support/scale.js';

const ROWS = FULL ? 1_000_000 : 5_000;
const KEYS = FULL ? 10_000 : 100;
const INSERT = `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome)
  VALUES (now(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'default', 'POST', false, 'completed')`;
/** Uses the tables that the look-up of a key does. */
const LOOK_UP = 'SELECT FROM gateway_key_secret JOIN gateway_key ON true JOIN team ON true';

let database: TestDatabase;
const clients: pg.Client[] = [];

/** A database as the first release left it, in use. */
beforeEach(async () => {
  database = await createDatabase({ empty: true });
  const first = new DataSource({
    ...dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 }),
    migrations: [Initial1795000000000],
  });
  await first.initialize();
  await first.runMigrations();
  await first.query(`
    CREATE TABLE request_log_today PARTITION OF request_log
      FOR VALUES FROM (date_trunc('day', now() - interval '1 day')) TO (date_trunc('day', now() + interval '2 days'));
    INSERT INTO team (id, name) SELECT gen_random_uuid(), 'team ' || i FROM generate_series(1, 10) AS i;
    INSERT INTO gateway_key (id, team_id, name)
      SELECT gen_random_uuid(), (SELECT id FROM team LIMIT 1), 'key ' || i FROM generate_series(1, ${KEYS}) AS i;
    INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome)
      SELECT now() - i * interval '1 millisecond', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
        'default', 'POST', false, 'completed' FROM generate_series(1, ${ROWS}) AS i`);
  await first.destroy();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
  await database.drop();
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  clients.push(client);
  return client;
}

interface Running {
  readonly runs: number;
  end(): Promise<{ runs: number; longestMs: number }>;
}

async function migrationsLeft(): Promise<number> {
  const [{ ran }] = (await database.query<{ ran: number }>(
    'SELECT count(*)::int AS ran FROM migrations',
  )) as [{ ran: number }];
  return MIGRATIONS.length - ran;
}

/** Runs a statement over and over. Its end returns how often it ran and the longest wait. */
async function keepRunning(statement: string): Promise<Running> {
  const client = await connect();
  const told = { runs: 0, longestMs: 0 };
  let running = true;
  const loop = (async () => {
    while (running) {
      const begun = performance.now();
      await client.query(statement);
      told.runs++;
      told.longestMs = Math.max(told.longestMs, performance.now() - begun);
    }
  })();
  await eventually(() => told.runs > 0);
  return {
    get runs() {
      return told.runs;
    },
    end: async () => {
      running = false;
      await loop;
      return told;
    },
  };
}

it('runs beside a log writer, waits for its open transaction without holding up others, and loses no row', async () => {
  const inTransaction = await connect();
  await inTransaction.query('BEGIN');
  await inTransaction.query(INSERT);
  const writer = await keepRunning(INSERT);
  const reader = await keepRunning(LOOK_UP);
  const begun = performance.now();
  const migrated = migrate(database.url);
  // The first migration that needs the log for itself gives up and tries again while the transaction is open.
  const left = MIGRATIONS.length - MIGRATIONS.indexOf(NoDefaultPartition1795000006000);
  await eventually(async () => (await migrationsLeft()) === left);
  const { runs } = writer;
  await eventually(() => writer.runs > runs + 20);
  expect(await migrationsLeft()).toBe(left);
  await inTransaction.query('COMMIT');
  expect(await migrated).toHaveLength(MIGRATIONS.length - 1 + FUNCTIONS.length);
  const took = performance.now() - begun;
  const [written, read] = [await writer.end(), await reader.end()];
  const [row] = await database.query<{ count: string }>('SELECT count(*) FROM request_log');
  expect(Number(row!.count)).toBe(ROWS + 1 + written.runs);
  const ms = (value: number) => `${value.toFixed(0)} ms`;
  process.stdout.write(
    `upgrade of ${ROWS} rows in ${ms(took)}: ${written.runs} inserts beside it, the longest ${ms(written.longestMs)}; ` +
      `${read.runs} look-ups, the longest ${ms(read.longestMs)}\n`,
  );
});

it('lets look-ups pass while it waits for somebody who reads a table for long', async () => {
  const report = await connect();
  await report.query('BEGIN');
  await report.query(LOOK_UP);
  const migrated = migrate(database.url);
  const isWaiting = async () =>
    (
      await database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'postern-migrate'
         AND wait_event_type = 'Lock'`,
      )
    ).length === 1;
  await eventually(isWaiting);
  // The report goes on, and the migration with it: without a bound this look-up would stand behind both.
  await (await connect()).query(LOOK_UP);
  await report.query('COMMIT');
  expect(await migrated).toHaveLength(MIGRATIONS.length - 1 + FUNCTIONS.length);
});

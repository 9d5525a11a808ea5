import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { LogHarness } from './log-harness.js';

let database: TestDatabase;
let relay: PostgresRelay;
let log: LogHarness;
/** Looks at the accounts at each turn of the event loop while a test runs. */
let watch: NodeJS.Immediate;
let looks = 0;

beforeEach(async () => {
  database = await createDatabase();
  relay = await PostgresRelay.to(database.url);
  log = await LogHarness.start(relay.url);
  const look = () => {
    looks++;
    log.expectAccountsToAgree();
    watch = setImmediate(look);
  };
  look();
});
afterEach(async () => {
  clearImmediate(watch);
  await log.stop();
  await relay.close();
  await log.remove();
  await database.drop();
});

const count = async () =>
  (await database.query<{ n: number }>('SELECT count(*)::int AS n FROM request_log'))[0]!.n;
const allThere = (n: number) => eventually(async () => (await count()) === n, 60_000);
const record = (n: number) => Array.from({ length: n }, () => log.record());
const bootFiles = async () => (await readdir(log.journal.bootFolder)).length;

it('writes rows and lets go of their files', async () => {
  const rows = record(2_500);
  await allThere(2_500);
  const found = await database.query<{ id: string }>('SELECT id FROM request_log ORDER BY id');
  expect(found.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).sort());
  await eventually(() => log.writer.counts.persisted === 2_500);
  expect(log.journal.oldestMs).toBe(0);
  await log.stop();
  expect(await readdir(log.journal.root)).toEqual([]);
});

it('keeps one refused row out of the way of the others, in a file', async () => {
  const before = looks;
  record(700);
  // Cannot come from the wire: log-row.ts would have made it null.
  const bad = log.record({ model: 'a\0b' });
  record(600);
  const worse = log.record({ prompt_tokens: 2 ** 31 });
  await allThere(1_300);
  await eventually(() => log.writer.counts.rejected === 2);
  expect(log.writer.counts).toMatchObject({ enqueued: 1_302, persisted: 1_300 });
  expect(await log.rejectedFiles()).toEqual([bad, worse].map(({ id }) => `${id}.json`).sort());
  const kept = await readFile(join(log.journal.root, 'rejected', `${worse.id}.json`), 'utf8');
  expect(JSON.parse(kept)).toEqual(worse);
  expect(looks).toBeGreaterThan(before + 5);
});

it('counts a refused row once though the connection breaks amid the halving', async () => {
  for (let round = 0; round < 5; round++) {
    record(400);
    log.record({ model: 'a\0b' });
    record(400);
    // Broken at whatever step the halving has got to.
    await eventually(() => log.writer.waiting < 801);
    relay.set('postern-log', 'cut');
    relay.set('postern-log', 'none');
    await allThere(800 * (round + 1));
  }
  await eventually(() => log.writer.waiting === 0);
  expect(log.writer.counts).toEqual({ enqueued: 4_005, persisted: 4_000, parked: 0, rejected: 5 });
  expect(await log.rejectedFiles()).toHaveLength(5);
});

it('has its commits survive a crash of the server, whatever the database is set to', async () => {
  await database.query(`DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());
  END $$`);
  await database.query(`
    CREATE TABLE seen (setting text);
    CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO seen VALUES (current_setting('synchronous_commit'));
      RETURN NULL;
    END $$;
    CREATE TRIGGER look AFTER INSERT ON request_log EXECUTE FUNCTION look()`);
  record(10);
  await allThere(10);
  const seen = await database.query<{ setting: string }>('SELECT DISTINCT setting FROM seen');
  expect(seen).toEqual([{ setting: 'on' }]);
});

it.each(['cut', 'frozen'] as const)(
  'waits for a Postgres that is %s, and loses nothing',
  async (trouble) => {
    record(100);
    await allThere(100);
    relay.set('postern-log', trouble);
    record(3_000);
    // One query in flight is lost with its connection; Postgres may have carried it out all the same.
    await eventually(() => log.writer.waiting === 3_000);
    expect(await bootFiles()).toBeGreaterThan(0);
    relay.set('postern-log', 'none');
    await allThere(3_100);
  },
  40_000,
);

it.each([
  [
    'its table is renamed away',
    'ALTER TABLE request_log RENAME TO away',
    'ALTER TABLE away RENAME TO request_log',
  ],
  [
    'no partition is there for its rows',
    'ALTER TABLE request_log DETACH PARTITION request_log_default',
    'ALTER TABLE request_log ATTACH PARTITION request_log_default DEFAULT',
  ],
])('waits while %s', async (_, spoil, mend) => {
  record(10);
  await allThere(10);
  await database.query(spoil);
  record(500);
  // Refused at least once by then.
  relay.set('postern-log', 'cut');
  relay.set('postern-log', 'none');
  await eventually(() => log.writer.waiting === 500);
  await database.query(mend);
  await allThere(510);
  expect(await log.rejectedFiles()).toEqual([]);
});

it('ends in seconds when Postgres hangs, and the next start brings the rows', async () => {
  record(10);
  await allThere(10);
  relay.set('postern-log', 'frozen');
  record(1_500);
  const begin = performance.now();
  await log.stop();
  // Bounded by its own 5 s; the query's 10 s are not waited for.
  expect(performance.now() - begin).toBeLessThan(9_000);
  log.expectAccountsToAgree();
  const next = await LogHarness.start(database.url, { dataDir: log.dataDir });
  await allThere(1_510);
  await eventually(
    async () => (await readdir(next.journal.root)).filter((name) => name !== 'reserve').length === 1,
  );
  expect(next.drain.counts.interrupted).toBe(0);
  await next.stop();
});

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { DAY_MS, dayOf, tableName } from '../../src/request-log/partitions.js';
import { OutageLog } from '../../src/request-log/writer/outage-log.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { LogHarness } from './log-harness.js';
import { createDays } from './rows.js';

// Statements are given up after 3 s, where a batch takes 20 ms.
setPatience(0.3, 'a batch of rows');
setPatience(1, 'a step of a stop');

let database: TestDatabase;
let relay: PostgresRelay;
let log: LogHarness;
/** Checks the counts each millisecond while a test runs: each batch takes longer than that. */
let watch: NodeJS.Timeout;
let looks = 0;

beforeAll(() => awayFromMidnight());
beforeEach(async () => {
  database = await createDatabase({ days: false });
  relay = await PostgresRelay.to(database.url);
  log = await LogHarness.start(relay.url);
  watch = setInterval(() => {
    looks++;
    log.expectAccountsToAgree();
  }, 1);
});
afterEach(async () => {
  clearInterval(watch);
  await log.stop();
  await relay.close();
  await log.remove();
  await database.drop();
});

const count = async () =>
  (await database.query<{ n: number }>('SELECT count(*)::int AS n FROM request_log'))[0]!.n;
const allThere = (n: number) => eventually(async () => (await count()) === n);
/** The writer knows it too: rows are in Postgres a moment before, and a writer that is cut off would write them again. */
async function allWritten(n: number): Promise<void> {
  await allThere(n);
  await eventually(() => log.writer.waiting === 0);
}
const record = (n: number) => Array.from({ length: n }, () => log.record());
/** Columns of a call that starts so many days from now. */
function startingIn(days: number): { id: string; started_at: string } {
  const msecs = Date.now() + days * DAY_MS;
  return { id: uuidv7({ msecs }), started_at: new Date(msecs).toISOString() };
}
const partitions = () => database.query("SELECT FROM pg_inherits WHERE inhparent = 'request_log'::regclass");
const bootFiles = async () => (await readdir(log.journal.runDirectory)).length;

never('writes rows and releases their files', async () => {
  const rows = record(2_500);
  await allThere(2_500);
  const found = await database.query<{ id: string }>('SELECT id FROM request_log ORDER BY id');
  expect(found.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).sort());
  await eventually(() => log.writer.counts.persisted === 2_500);
  expect(log.journal.oldestMs).toBe(0);
  await log.stop();
  expect(await readdir(log.journal.root)).toEqual([]);
});

never(
  'changes nothing of a complete row that is written again, as from a journal that was read before',
  async () => {
    const row = log.record();
    await allWritten(1);
    const before = await database.query('SELECT * FROM request_log');
    log.writer.add({ ...row, model: 'another' }, []);
    await eventually(() => log.writer.counts.persisted === 2);
    expect(await database.query('SELECT * FROM request_log')).toEqual(before);
  },
);

it('writes the rows of a process that ends before it has compared itself with Postgres', async () => {
  const ending = await LogHarness.start(relay.url, { keepMs: 600_000 });
  ending.record();
  await ending.stop();
  expect(await count()).toBe(1);
  await ending.remove();
});

it('keeps one rejected row out of the way of the others, in a file', async () => {
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

never('counts a rejected row once though the connection breaks amid the halving', async () => {
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
  expect(log.writer.counts).toEqual({ enqueued: 4_005, persisted: 4_000, spilled: 0, rejected: 5 });
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

it.each(['cut', 'frozen'] as const)('waits for a Postgres that is %s, and loses nothing', async (trouble) => {
  record(100);
  await allWritten(100);
  relay.set('postern-log', trouble);
  record(3_000);
  // One query in flight is lost with its connection; Postgres may have carried it out all the same.
  await eventually(() => log.writer.failingMs > 0);
  expect(log.writer.waiting).toBe(3_000);
  expect(await bootFiles()).toBeGreaterThan(0);
  relay.set('postern-log', 'none');
  await allThere(3_100);
});

it('waits while its table is renamed away', async () => {
  record(10);
  await allWritten(10);
  await database.query('ALTER TABLE request_log RENAME TO away');
  const report = jest.spyOn(OutageLog.prototype, 'report');
  record(500);
  const missing = /relation "request_log" does not exist/;
  await eventually(() => report.mock.calls.some(([, reason]) => missing.test(reason)));
  report.mockRestore();
  expect(log.writer.waiting).toBe(500);
  await database.query('ALTER TABLE away RENAME TO request_log');
  await allThere(510);
  expect(await log.rejectedFiles()).toEqual([]);
});

it('creates the days of rows that have no partition', async () => {
  expect(await partitions()).toEqual([]);
  record(10);
  const old = [-1, -400].map((days) => log.record(startingIn(days)));
  await allWritten(12);
  expect(await partitions()).toHaveLength(3);
  await database.query(`DROP TABLE ${tableName(dayOf(Date.now()))}`);
  record(500);
  await allThere(502);
  expect(old).toHaveLength(2);
  expect(await log.rejectedFiles()).toEqual([]);
});

it('reports rows with charges as an error if no module keeps budgets, and stores them with their charges', async () => {
  // A batch whose day has no partition is tried twice.
  const errors = new Set<string>();
  Logger.overrideLogger({ log() {}, warn() {}, error: (line: unknown) => void errors.add(String(line)) });
  const { id } = log.record({ charge_usd: '0.25', charge_tokens: 7 });
  record(2);
  await allWritten(3);
  Logger.overrideLogger(false);
  expect([...errors]).toEqual([
    '1 rows with charges are written without settling them: no module keeps budgets in this process. Import LimitsModule.',
  ]);
  const charged = 'SELECT id FROM request_log WHERE charge_usd IS NOT NULL AND charge_tokens IS NOT NULL';
  expect(await database.query(charged)).toEqual([{ id }]);
});

describe('rows that start more than 2 days ahead of the database’s clock', () => {
  const alarms = () => said.filter((line) => line.includes('ahead of the database'));
  let said: string[];
  beforeEach(() => {
    said = [];
    const keep = (line: unknown) => void said.push(String(line));
    Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
  });
  afterEach(() => {
    Logger.overrideLogger(false);
  });

  /** Sets the database's clock as its functions see it from now on. */
  async function setClock(daysAhead: number): Promise<void> {
    await database.query(`
      CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql
        AS $$ SELECT pg_catalog.clock_timestamp() + interval '${daysAhead} days' $$`);
    await database.query(
      `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET search_path = public, pg_catalog`,
    );
    // For the writer's connection: a setting of the database is for new ones.
    relay.set('postern-log', 'cut');
    relay.set('postern-log', 'none');
  }

  it('wait and hold up no other row, also where their day has a partition', async () => {
    await createDays(database, Date.now() + 3 * DAY_MS);
    const future = [3, 40].flatMap((days) => Array.from({ length: 300 }, () => log.record(startingIn(days))));
    const first = log.record();
    record(1_200);
    await allThere(1_201);
    record(100);
    await allWritten(1_301);
    expect(log.writer.counts).toMatchObject({ persisted: 1_301, spilled: future.length, rejected: 0 });
    expect(await database.query('SELECT id FROM request_log WHERE id = $1', [first.id])).toHaveLength(1);
    await eventually(() => alarms().length > 0);
    expect(alarms()).toEqual([expect.stringContaining('600 rows start more than 2 days ahead')]);
    // No partition is created for a day so far ahead.
    expect(await partitions()).toHaveLength(2);
  });

  it('go to Postgres once their day is near enough, and only those', async () => {
    record(10);
    for (const days of [5, 5, 30]) log.record(startingIn(days));
    await allThere(10);
    await eventually(() => log.writer.counts.spilled === 3);
    await setClock(4);
    // Its clock is read every few seconds while rows wait.
    await allThere(12);
    await eventually(() => log.writer.counts.spilled === 1);
    await setClock(29);
    await allThere(13);
    await eventually(() => log.writer.counts.spilled === 0 && log.writer.future.count === 0);
  });

  it('survive a restart, as rows of a dead process and as spilled ones', async () => {
    const rows = [log.record(startingIn(3)), log.record(startingIn(3))];
    await eventually(() => log.writer.counts.spilled === 2);
    for (let start = 1; start <= 2; start++) {
      await log.stop();
      log = await LogHarness.start(relay.url, { dataDir: log.dataDir });
      log.record();
      await allThere(start);
      await eventually(() => log.writer.counts.spilled === 2);
      const { root } = log.journal;
      await eventually(async () => (await readdir(root)).filter((name) => name !== 'reserve').length === 1);
    }
    await setClock(2);
    await allThere(4);
    const found = await database.query<{ id: string }>('SELECT id FROM request_log WHERE id = ANY ($1)', [
      rows.map(({ id }) => id),
    ]);
    expect(found).toHaveLength(2);
  });

  it('wait in memory while the journal takes no lines, and still hold up no other row', async () => {
    const real = log.journal.append.bind(log.journal);
    const rejecting = jest.spyOn(log.journal, 'append').mockImplementation((each) => {
      if (each.t === 'R') throw new Error('ENOSPC: injected');
      return real(each);
    });
    log.record(startingIn(30));
    record(50);
    await allThere(50);
    await eventually(() => log.writer.waiting === 1);
    expect(log.writer.counts.spilled).toBe(0);
    rejecting.mockRestore();
    await eventually(() => log.writer.counts.spilled === 1);
  });
});

it('ends in seconds when Postgres hangs, and the next start brings the rows', async () => {
  record(10);
  await allThere(10);
  relay.set('postern-log', 'frozen');
  record(1_500);
  setPatience(0.1, 'rows at a stop');
  // The statement that hangs has minutes: with these, this test would have none left.
  await log.stop();
  log.expectAccountsToAgree();
  const next = await LogHarness.start(database.url, { dataDir: log.dataDir });
  await allThere(1_510);
  await eventually(
    async () => (await readdir(next.journal.root)).filter((name) => name !== 'reserve').length === 1,
  );
  expect(next.drain.counts.interrupted).toBe(0);
  await next.stop();
});

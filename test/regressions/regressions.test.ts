import { randomUUID } from 'node:crypto';
import type { Regression, RegressionHandler } from '../../src/regressions/regression.js';
import { Regressions } from '../../src/regressions/regressions.service.js';
import { sendTo, startUsageProvider } from '../limits/limited-gateway.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import type { RawProvider } from '../support/raw-provider.js';
import { LossyPostgres } from './lossy-postgres.js';

interface Noted {
  id: string;
  state: string;
  lost_from: Date | null;
  gap_seconds: number | null;
  runs: Record<string, { surviving: string; acknowledged: string }>;
  rows_put_back: string;
}

interface Run {
  run: string;
  seq: string;
  at: Date;
  server: Date | null;
}

let postgres: LossyPostgres;
let provider: RawProvider;
let settings: Record<string, string>;
let replicas: [TestGateway, TestGateway];
/** Calls with it have an Idempotency-Key, and wait for the roll call. */
let replayKey: string;
/** What the handlers were called for, in their order, in both replicas. */
let called: string[];
/** The runs whose rows each replica was to put back last. */
const rowsOfRuns: string[][] = [[], []];
/** Holds the handler of the second replica. */
let held: Deferred | null;

const regressionsOf = (replica: TestGateway) => replica.gateway.app.get(Regressions);

beforeAll(async () => {
  postgres = await LossyPostgres.start();
  provider = await startUsageProvider({ input: 1, output: 1 });
  const { database } = postgres;
  settings = { PROVIDER_URL: provider.url, MASTER_KEY: Buffer.alloc(32, 5).toString('base64') };
  const first = await startTestGateway(settings, database);
  replicas = [first, await startTestGateway(settings, database)];
  replayKey = await first.createKey({ idempotency: 'replay' });
  replicas.forEach((replica, i) => {
    const regressions = regressionsOf(replica);
    const handlerOf = (name: string): RegressionHandler => ({
      refuse: () => void called.push(`${i} refuse ${name}`),
      putBack: async ({ runs }: Regression) => {
        called.push(`${i} put back ${name}`);
        if (i === 1 && name === 'ends') await held?.promise;
        if (name === 'rows') rowsOfRuns[i] = [...runs.keys()];
        return name === 'rows' && runs.has(regressions.run) ? { rows: 3 } : {};
      },
      dismissed: () => void called.push(`${i} dismiss ${name}`),
    });
    for (const phase of ['claims', 'rows', 'ends'] as const)
      regressions.onRegression(phase, handlerOf(phase));
    regressions.onNewServer(handlerOf('new server'));
  });
});
beforeEach(async () => {
  called = [];
  held = null;
  await postgres.database.query('DELETE FROM database_regression');
});
afterEach(() => held?.resolve());
afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  await provider.stop();
  await postgres.database.drop();
});

const runs = () => postgres.database.query<Run>('SELECT * FROM gateway_run');
const noted = () => postgres.database.find<Noted>('SELECT * FROM database_regression');

async function runOf(replica: TestGateway): Promise<Run> {
  const { run } = regressionsOf(replica);
  return (await runs()).find((row) => row.run === run)!;
}

/** A call whose row is in Postgres. */
async function call(replica: TestGateway): Promise<string> {
  const { status, id } = await sendTo(replica.url, replicas[0].key, { model: 'm' });
  expect(status).toBe(200);
  await replica.row(id);
  return id;
}

function claim(replica: TestGateway): ReturnType<typeof sendTo> {
  const headers = { 'idempotency-key': `"${randomUUID()}"` };
  return sendTo(replica.url, replayKey, { model: 'm' }, undefined, headers);
}

/** Waits until both replicas have answered on the server that runs now. */
async function answered(): Promise<void> {
  await eventually(async () => {
    const { length } = await postgres.database.query(
      'SELECT FROM gateway_run WHERE server = pg_postmaster_start_time() AND run = ANY ($1)',
      [replicas.map((replica) => regressionsOf(replica).run)],
    );
    return length === 2 && replicas.every((replica) => regressionsOf(replica).isAdmitting);
  });
}

it('counts batches and polls, each once', async () => {
  await answered();
  const before = await runOf(replicas[0]);
  await call(replicas[0]);
  const after = await runOf(replicas[0]);
  expect(BigInt(after.seq)).toBeGreaterThan(BigInt(before.seq));
  // Without calls, too.
  await eventually(async () => BigInt((await runOf(replicas[1])).seq) > BigInt(before.seq) + 1n);
});

it('notices a loss once, and claims wait for every process while plain calls go on', async () => {
  await answered();
  await call(replicas[0]);
  const surviving = await runOf(replicas[0]);
  const other = await runOf(replicas[1]);
  const lost = await call(replicas[0]);
  // Both lose something.
  await eventually(async () => BigInt((await runOf(replicas[1])).seq) > BigInt(other.seq));
  held = deferred();
  await postgres.lose(async (client) => {
    await client.query('DELETE FROM request_log WHERE id = $1', [lost]);
    for (const { run, seq, at } of [surviving, other])
      await client.query('UPDATE gateway_run SET seq = $2, at = $3 WHERE run = $1', [run, seq, at]);
  });
  const row = await noted();
  expect(row).toMatchObject({ state: 'put_back' });
  expect(row.lost_from!.getTime()).toBeLessThanOrEqual(surviving.at.getTime());
  await eventually(() => called.includes('1 put back ends') && called.includes('0 put back claims'));

  // The second replica has not put back what it knows.
  const waiting = claim(replicas[0]);
  let isDone = false;
  void waiting.finally(() => (isDone = true));
  await call(replicas[0]);
  expect(isDone).toBe(false);
  held.resolve();
  expect((await waiting).status).toBe(200);
  await answered();

  for (const i of [0, 1]) {
    const own = called.filter((one) => one.startsWith(`${i}`)).map((one) => one.slice(2));
    expect(new Set(own.slice(0, 3))).toEqual(new Set(['refuse ends', 'refuse rows', 'refuse claims']));
    expect(own.slice(-3)).toEqual(['put back ends', 'put back rows', 'put back claims']);
  }
  const { run } = regressionsOf(replicas[0]);
  const all = await postgres.database.query<Noted>('SELECT * FROM database_regression');
  expect(all).toHaveLength(1);
  expect(all[0]!.runs[run]).toMatchObject({ surviving: surviving.seq });
  expect(BigInt(all[0]!.runs[run]!.acknowledged)).toBeGreaterThan(BigInt(surviving.seq));
  expect(Number(all[0]!.rows_put_back)).toBeGreaterThanOrEqual(3);
  // Counted beyond everything that was acknowledged, so that the next loss is one of its own.
  expect(BigInt((await runOf(replicas[0])).seq)).toBeGreaterThan(BigInt(all[0]!.runs[run]!.acknowledged));
});

it('does not drop what is still to be put back when more is lost', async () => {
  await answered();
  const loseRun = (run: string) =>
    postgres.lose((client) =>
      client.query('UPDATE gateway_run SET seq = seq - 1 WHERE run = $1', [run]).then(() => {}),
    );
  const [first, second] = replicas.map((replica) => regressionsOf(replica).run);
  held = deferred();
  await loseRun(second!);
  await eventually(() => called.includes('1 put back ends') && called.includes('0 put back claims'));
  // The first replica is counted again.
  const { seq } = await runOf(replicas[0]);
  await eventually(async () => BigInt((await runOf(replicas[0])).seq) > BigInt(seq) + 1n);
  await loseRun(first!);
  await eventually(
    async () => (await postgres.database.query('SELECT FROM database_regression')).length >= 2,
  );
  await eventually(() => called.filter((one) => one === '1 refuse rows').length >= 2);
  held.resolve();
  await eventually(() => called.includes('1 put back claims'));
  await answered();
  expect(rowsOfRuns[1]).toContain(second);
});

it('knows what runs have written that had ended before it started', async () => {
  await answered();
  const ended = randomUUID();
  const { database } = postgres;
  await database.query('INSERT INTO gateway_run (run, seq, at) VALUES ($1, 7, clock_timestamp())', [ended]);
  const later = await startTestGateway(settings, database);
  try {
    await eventually(async () => (await runOf(later)) !== undefined);
    await postgres.lose(async (client) => {
      await client.query('UPDATE gateway_run SET seq = 6 WHERE run = $1', [ended]);
    });
    expect((await noted()).runs).toMatchObject({ [ended]: { surviving: '6', acknowledged: '7' } });
  } finally {
    await later.stop();
  }
  // They have answered already, because they lost nothing themselves.
  await eventually(() => [0, 1].every((i) => called.includes(`${i} put back claims`)));
  await answered();
});

it('takes a restart for none, and asks what only a new server can have lost', async () => {
  await answered();
  await postgres.restart();
  await answered();
  expect(new Set(called)).toEqual(
    new Set(['0 refuse new server', '1 refuse new server', '0 put back new server', '1 put back new server']),
  );
  expect(await postgres.database.query('SELECT FROM database_regression')).toEqual([]);
  expect((await claim(replicas[0])).status).toBe(200);
});

it('waits for an administrator after a gap that no journal covers', async () => {
  await answered();
  const ids = replicas.map((replica) => regressionsOf(replica).run);
  await postgres.lose(async (client) => {
    await client.query(
      `UPDATE gateway_run SET seq = seq - 1, at = at - interval '1 hour' WHERE run = ANY ($1)`,
      [ids],
    );
  });
  const row = await noted();
  expect(row).toMatchObject({ state: 'waiting' });
  expect(row.gap_seconds).toBeGreaterThan(3_000);
  await answered();
  expect(called.filter((one) => /put back (ends|rows|claims)/.test(one))).toEqual([]);
  expect(called).toContain('0 refuse ends');
  const ready = async () => (await fetch(`${replicas[0].url}/health/ready`)).text();
  expect(await ready()).toContain('decide what is put back');
  await call(replicas[0]);

  await postgres.database.query(`UPDATE database_regression SET state = 'put_back'`);
  await eventually(() => called.includes('0 put back claims') && called.includes('1 put back claims'));
  await eventually(async () => !(await ready()).includes('decide'));
});

it('puts back nothing that was dismissed', async () => {
  await answered();
  const { run } = regressionsOf(replicas[0]);
  await postgres.lose(async (client) => {
    await client.query(`UPDATE gateway_run SET seq = seq - 1, at = at - interval '1 hour' WHERE run = $1`, [
      run,
    ]);
  });
  expect(await noted()).toMatchObject({ state: 'waiting' });
  await answered();
  await postgres.database.query(`UPDATE database_regression SET state = 'dismissed'`);
  await eventually(() => called.includes('0 dismiss claims') && called.includes('1 dismiss claims'));
  expect(called.filter((one) => /put back (ends|rows|claims)/.test(one))).toEqual([]);
  const before = await runOf(replicas[0]);
  await eventually(async () => BigInt((await runOf(replicas[0])).seq) > BigInt(before.seq));

  // What the same server loses after that is not decided, and put back.
  await postgres.database.query('UPDATE gateway_run SET seq = seq - 1 WHERE run = $1', [run]);
  await eventually(() => called.includes('0 put back claims') && called.includes('1 put back claims'));
  await answered();
  const losses = await postgres.database.query(
    'SELECT state, number FROM database_regression ORDER BY number',
  );
  expect(losses).toEqual([
    { state: 'dismissed', number: 1 },
    { state: 'put_back', number: 2 },
  ]);
});

it('takes a process for no loss whose row cannot be made, as on a disk that was full', async () => {
  await answered();
  const { database } = postgres;
  await database.query(`
    CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON gateway_run FOR EACH ROW EXECUTE FUNCTION full_disk()`);
  const late = await startTestGateway({ PROVIDER_URL: provider.url }, database);
  try {
    await eventually(() => regressionsOf(late).isAdmitting);
    await call(late);
    expect(await runOf(late)).toBeUndefined();
    await database.query('DROP FUNCTION full_disk CASCADE');
    await eventually(async () => (await runOf(late)) !== undefined);
    await call(late);
    await eventually(async () => BigInt((await runOf(late)).seq) > 2n);
    expect(await database.query('SELECT FROM database_regression')).toEqual([]);
  } finally {
    await late.stop();
  }
  // Nor one that has ended.
  for (let poll = 0; poll < 3; poll++) {
    const { seq } = await runOf(replicas[0]);
    await eventually(async () => (await runOf(replicas[0])).seq !== seq);
  }
  expect(await database.query('SELECT FROM database_regression')).toEqual([]);
});

it('puts back nothing into another database', async () => {
  await answered();
  await postgres.lose(async (client) => {
    await client.query('DELETE FROM gateway_run');
  });
  expect(await noted()).toMatchObject({ state: 'another_database', lost_from: null });
  await answered();
  expect(called.filter((one) => /put back (ends|rows|claims)/.test(one))).toEqual([]);
  expect(await (await fetch(`${replicas[0].url}/health/ready`)).text()).toContain('another database');
  expect((await claim(replicas[0])).status).toBe(200);
  // The next one is a loss again.
  await postgres.database.query('DELETE FROM database_regression');
});

it('notices a loss on a server that has not restarted, and reads the log on before it puts rows back', async () => {
  await answered();
  const { run } = regressionsOf(replicas[1]);
  const [{ cursor }] = (await postgres.database.query<{ cursor: Date }>(
    // Later than the loss is noticed, by a look every 2 s.
    `UPDATE usage_rollup SET cursor = clock_timestamp() + interval '6 s' RETURNING cursor`,
  )) as [{ cursor: Date }];
  await postgres.database.query('UPDATE gateway_run SET seq = seq - 1 WHERE run = $1', [run]);
  expect(await noted()).toMatchObject({ state: 'put_back' });
  await eventually(() => called.includes('1 put back rows'));
  const [{ now }] = (await postgres.database.query<{ now: Date }>('SELECT clock_timestamp() AS now')) as [
    { now: Date },
  ];
  expect(now.getTime()).toBeGreaterThan(cursor.getTime());
});

import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { ClaimStore } from '../../src/idempotency/claim-store.service.js';
import { LostClaims } from '../../src/idempotency/lost-claims.service.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { keptFiles } from '../../src/request-log/journal/run-directories.js';
import { RunCounter } from '../../src/regressions/run-counter.js';
import { once, open } from '../idempotency/once.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { LogHarness } from './log-harness.js';

/*
 * Postgres loses what it had acknowledged: what the tail of its log contained is undone in one transaction, as on a standby
 * that is promoted without it.
 */

const COUNTED = '{"usage":{"prompt_tokens":8,"completion_tokens":2}}';
/** What a call changes in Postgres beside its row. */
const TABLES = ['limit_spent', 'limit_hold', 'limit_meter', 'limit_process', 'idempotency_record'];

let wire: Wire;
let auth: string;
let goOn: Deferred;
let status: string;

beforeAll(async () => {
  wire = await Wire.start({ JOURNAL_KEEP_MS: '600000' }, async (req) => {
    const { bytes } = await req.body;
    if (bytes.includes('wait')) await goOn.promise;
    req.socket.write(answer(status, ['Content-Type: application/json'], COUNTED));
  });
  const key = await wire.gateway.createKey({
    idempotency: 'replay',
    budgets: [{ tokens: 1_000_000, period: 'total' }],
  });
  auth = `Authorization: Bearer ${key}`;
});
afterAll(() => wire.stop());
beforeEach(() => {
  goOn = deferred();
  status = '200 OK';
});

const query = <T extends object>(sql: string, values?: unknown[]) =>
  wire.gateway.database.query<T>(sql, values);
const part = <T>(type: new (...args: never[]) => T): T => wire.gateway.gateway.app.get(type);

async function ids(): Promise<string[]> {
  return (await query<{ id: string }>('SELECT id FROM request_log ORDER BY id')).map(({ id }) => id);
}
const rowsAre = (count: number) => eventually(async () => (await ids()).length === count);
const call = (name?: string, body = '{}') =>
  once(wire.gateway, [auth, ...(name === undefined ? [] : [`Idempotency-Key: ${name}`])], body);

/** The seq of this run in Postgres, once it is above this one. */
async function seqAbove(seq: bigint): Promise<bigint> {
  const { run } = part(RunCounter);
  return eventually(async () => {
    const [row] = await query<{ seq: string }>('SELECT seq FROM gateway_run WHERE run = $1', [run]);
    return row !== undefined && BigInt(row.seq) > seq ? BigInt(row.seq) : undefined;
  });
}

/** What is spent, and what the rows of the log were charged. */
async function ledger(): Promise<{ spent: number; charged: number }> {
  const [row] = await query<{ spent: number; charged: number }>(`
    SELECT (SELECT COALESCE(sum(spent), 0) FROM limit_meter)::int
             + (SELECT COALESCE(sum(spent), 0) FROM limit_spent)::int AS spent,
           (SELECT COALESCE(sum(charge_tokens), 0) FROM request_log)::int AS charged`);
  return row!;
}

/** Remembers the state of Postgres. @returns a function that goes back to it */
async function mark(): Promise<() => Promise<void>> {
  const { run } = part(RunCounter);
  const before = await ids();
  const copies = TABLES.map(
    (table) => `DROP TABLE IF EXISTS before_${table}; CREATE TABLE before_${table} AS TABLE ${table};`,
  );
  await query(copies.join('\n'));
  const seq = await seqAbove(-1n);
  return async () => {
    const tables = [...TABLES].reverse();
    await query(`
      ${TABLES.map((table) => `DELETE FROM ${table};`).join('\n')}
      ${tables.map((table) => `INSERT INTO ${table} SELECT * FROM before_${table};`).join('\n')}
      DELETE FROM request_log WHERE NOT id = ANY ('{${before.join(',')}}');
      UPDATE gateway_run SET seq = ${seq} WHERE run = '${run}'`);
  };
}

/** The counts of all regressions so far. */
async function putBack(): Promise<{ rows: number; claims: number; skipped: number }> {
  const [row] = await query<{ rows: number; claims: number; skipped: number }>(`
    SELECT COALESCE(sum(rows_put_back), 0)::int AS rows, COALESCE(sum(claims_put_back), 0)::int AS claims,
           COALESCE(sum(rows_skipped), 0)::int AS skipped
    FROM database_regression`);
  return row!;
}

never('puts back rows, charges and claims that Postgres has lost, each once', async () => {
  const journal = part(Journal);
  for (let n = 0; n < 3; n++) await call();
  await rowsAre(3);
  const lose = await mark();
  const marked = await seqAbove(-1n);

  await call('done');
  status = '500 Internal Server Error';
  await call('failed');
  status = '200 OK';
  for (let n = 0; n < 3; n++) await call();
  await rowsAre(8);
  // Half of what is lost is in a finished file, the other half in the one that a call under way needs.
  await seqAbove(marked);
  journal['rotate']();
  await eventually(async () => (await keptFiles(journal.runDirectory)).length > 0);
  const running = await open(wire.gateway, [auth, 'Idempotency-Key: running'], 'wait');
  await eventually(() => wire.provider.requests.length === 9);
  for (let n = 0; n < 3; n++) await call();
  await rowsAre(11);
  await seqAbove(await seqAbove(-1n));
  const before = await ids();
  expect(await ledger()).toEqual({ spent: 110, charged: 110 });

  await lose();
  await eventually(async () => (await putBack()).rows === 8);
  expect(await ids()).toEqual(before);
  expect(await ledger()).toEqual({ spent: 110, charged: 110 });
  expect(await putBack()).toEqual({ rows: 8, claims: 2, skipped: 0 });

  // No call runs twice: the response of one is lost, the other still runs.
  const again = await call('done');
  expect([again.status, again.body.toString()]).toEqual([
    409,
    expect.stringContaining('idempotency_outcome_unknown'),
  ]);
  const duplicate = open(wire.gateway, [auth, 'Idempotency-Key: running'], 'wait');
  expect(wire.provider.requests).toHaveLength(12);
  goOn.resolve();
  expect((await running.answer()).status).toBe(200);
  expect((await (await duplicate).answer()).status).toBe(200);
  expect(wire.provider.requests).toHaveLength(12);
  // One that may run again still may.
  expect((await call('failed')).status).toBe(200);
  expect(wire.provider.requests).toHaveLength(13);
  running.destroy();
  (await duplicate).destroy();
});

never('puts back the claim of a call that ends while claims are put back', async () => {
  await seqAbove(await seqAbove(-1n));
  const lose = await mark();
  const sent = wire.provider.requests.length + 1;
  const ending = await open(wire.gateway, [auth, 'Idempotency-Key: ending'], 'wait');
  await eventually(() => wire.provider.requests.length === sent);
  const claims = part(LostClaims);
  const real = claims['putBackHeld'].bind(claims);
  const spy = jest.spyOn(claims as unknown as { putBackHeld: typeof real }, 'putBackHeld');
  spy.mockImplementationOnce(async () => {
    // It has found no claim in which its response could be stored, and its row is written.
    const rows = (await ids()).length;
    goOn.resolve();
    expect((await ending.answer()).status).toBe(200);
    await rowsAre(rows + 1);
    await eventually(() => part(ClaimStore)['held'].size === 0);
    return real();
  });
  await seqAbove(await seqAbove(-1n));
  await lose();
  await eventually(() => spy.mock.calls.length > 0);
  const again = await call('ending', 'wait');
  expect([again.status, again.body.toString()]).toEqual([
    409,
    expect.stringContaining('idempotency_outcome_unknown'),
  ]);
  expect(wire.provider.requests).toHaveLength(sent);
  ending.destroy();
});

describe('what an earlier run has kept', () => {
  let database: TestDatabase;
  let dataDir: string;
  let warnings: string[];
  beforeEach(async () => {
    database = await createDatabase();
    dataDir = await mkdtemp(join(tmpdir(), 'postern-kept-run-'));
    warnings = [];
  });
  afterEach(async () => {
    await rm(dataDir, { recursive: true });
    await database.drop();
  });

  const stored = async () => (await database.query('SELECT id FROM request_log')).length;
  const folders = async () =>
    (await readdir(join(dataDir, 'journal'))).filter((name) => name !== 'reserve').sort();

  async function start(keepMs = 600_000): Promise<LogHarness> {
    const log = await LogHarness.start(database.url, { dataDir, keepMs });
    Logger.overrideLogger({
      log() {},
      error() {},
      warn: (line: unknown) => void warnings.push(String(line)),
    });
    return log;
  }

  /** A run that has written so many rows and ended in order. @returns its UUID */
  async function earlierRun(rows: number): Promise<string> {
    const log = await start();
    for (let n = 0; n < rows; n++) log.record();
    await eventually(() => log.writer.counts.persisted === rows);
    await log.stop();
    const [folder] = await folders();
    expect(await keptFiles(join(dataDir, 'journal', folder!))).toHaveLength(1);
    return folder!;
  }

  it('is put back at the start if Postgres has lost some of it, and is then kept by the new run', async () => {
    const earlier = await earlierRun(20);
    await database.query(`
      DELETE FROM request_log WHERE id IN (SELECT id FROM request_log ORDER BY id DESC LIMIT 12);
      UPDATE gateway_run SET seq = 0`);
    expect(await stored()).toBe(8);
    const log = await start();
    await eventually(async () => (await stored()) === 20);
    await eventually(async () => !(await folders()).includes(earlier));
    expect(await keptFiles(log.journal.runDirectory)).toHaveLength(1);
    expect(log.drain.counts).toMatchObject({ drained: 0, interrupted: 0, corrupt: 0 });
    await log.stop();
  });

  it('is put back after a loss although a folder of another run cannot be read', async () => {
    const earlier = await earlierRun(5);
    // Not a file: every attempt to drain it fails.
    const broken = join(dataDir, 'journal', '0192d1c0-0000-7000-8000-000000000000', '00000001.log');
    await mkdir(broken, { recursive: true });
    const log = await start();
    await eventually(() => log.journal.kept.bytes > 0);
    await database.query('DELETE FROM request_log');
    const lost = new Map([[earlier, { surviving: '0', acknowledged: '9' }]]);
    const regression = { id: null, server: '', from: null, gapMs: 0, runs: lost };
    await log.drain['putBackDead']({ ...regression, signal: new AbortController().signal });
    expect(await stored()).toBe(5);
    expect(await folders()).not.toContain(earlier);
    await log.stop();
  });

  it('stays until its time has passed if Postgres has all of it', async () => {
    const earlier = await earlierRun(5);
    const log = await start();
    // Read: it counts.
    await eventually(() => log.journal.kept.bytes > 0);
    expect(await folders()).toContain(earlier);
    await log.stop();
    const next = await start(1);
    await eventually(async () => !(await folders()).includes(earlier));
    expect(next.journal.kept.bytes).toBe(0);
    expect(await stored()).toBe(5);
    await next.stop();
  });

  it.each([
    { why: 'Postgres does not know the run', change: 'DELETE FROM gateway_run' },
    {
      why: 'the state is that of a restored backup',
      change: "UPDATE gateway_run SET seq = 0, at = clock_timestamp() - interval '11 minutes'",
    },
    {
      why: 'it was noticed on a server that has started again since, and nobody has decided',
      change: `
        UPDATE gateway_run SET seq = 0;
        INSERT INTO database_regression (id, server, state, runs)
        SELECT gen_random_uuid(), pg_postmaster_start_time() - interval '1 hour', 'waiting',
          jsonb_build_object(run, '{"surviving": "0", "acknowledged": "9"}'::jsonb)
        FROM gateway_run`,
    },
  ])('is left alone and reported if $why, however old', async ({ change }) => {
    const earlier = await earlierRun(5);
    await database.query(`DELETE FROM request_log; ${change}`);
    const log = await start();
    await eventually(() => log.journal.kept.bytes > 0);
    log.record();
    await eventually(async () => (await stored()) === 1);
    expect(warnings).toContainEqual(expect.stringContaining('are left as they are'));
    expect(await folders()).toContain(earlier);
    await log.stop();
    expect(await stored()).toBe(1);
  });
});

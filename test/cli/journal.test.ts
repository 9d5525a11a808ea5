import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { openDataDir } from '../../src/platform/data-dir.js';
import { encodeLine } from '../../src/request-log/journal/record-codec.js';
import { DAY_MS } from '../../src/request-log/partitions.js';
import { recordsOf, rowsOf } from '../request-log/journal-calls.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
let dir: string;

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());
// The volume of a gateway that is gone: two calls ended, one cut, and a torn line.
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'postern-volume-'));
  await openDataDir(dir);
  const run = join(dir, 'journal', uuidv7());
  await mkdir(run, { recursive: true });
  const lines = [...recordsOf('read'), ...recordsOf('ended'), ...recordsOf('begun')].map(encodeLine);
  await writeFile(join(run, '00000001.log'), Buffer.concat([...lines, Buffer.from('v1 torn')]));
});
afterEach(() => rm(dir, { recursive: true }));

it('counts what a volume holds and changes nothing', async () => {
  const { code, stdout } = await runHere(['journal', 'status', dir, '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([{ rows: 3, interrupted: 1, damaged_lines: 1 }]);
  expect(await readdir(join(dir, 'journal'))).toHaveLength(1);
});

it('brings its rows to Postgres, once', async () => {
  const before = await database.query('SELECT id FROM request_log');
  const env = { DATABASE_URL: database.url };
  const { code, stdout } = await runHere(['journal', 'drain', dir], env);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^3 rows written from .* \(1 interrupted, 1 damaged lines/);
  const rows = await database.query<{ outcome: string }>('SELECT outcome FROM request_log ORDER BY outcome');
  expect(rows.map(({ outcome }) => outcome)).toEqual(['completed', 'completed', 'interrupted']);
  expect(before).toHaveLength(0);
  expect((await runHere(['journal', 'drain', dir], env)).stdout).toContain('The journal is empty');
});

it('leaves finished files alone, and with --kept puts back what Postgres has lost of them, each row once', async () => {
  const [folder] = await readdir(join(dir, 'journal'));
  const kept = join(dir, 'journal', folder!, 'kept');
  await mkdir(kept);
  const there = recordsOf('read');
  const claim = Buffer.alloc(32, 9).toString('base64url');
  const lost = recordsOf('read').map((record) => ({ ...record, ...(record.t === 'B' && { claim }) }));
  const old = new Date(Date.now() - 40 * DAY_MS);
  const [begin, ...rest] = recordsOf('read');
  const id = uuidv7({ msecs: old.getTime() });
  // Retention has dropped its day.
  const dropped = [{ ...begin!, started_at: old.toISOString() }, ...rest].map((record) => ({
    ...record,
    id,
  }));
  await writeFile(
    join(kept, '17-00000000.log'),
    Buffer.concat([...there, ...dropped, ...lost].map(encodeLine)),
  );
  const status = await runHere(['journal', 'status', dir, '--json']);
  expect(JSON.parse(status.stdout)).toMatchObject([{ rows: 3, kept_files: 1 }]);
  const env = { DATABASE_URL: database.url };
  const plain = await runHere(['journal', 'drain', dir], env);
  expect(plain.stdout).toContain('1 finished files kept in');
  expect(await readdir(kept)).toEqual(['17-00000000.log']);
  // One of its rows is in Postgres.
  const row = rowsOf(there).get(there[0]!.id)!;
  const columns = `started_at, id, team_id, key_id, provider, method, path, streamed, outcome`;
  await database.query(
    `INSERT INTO request_log (${columns}) VALUES ($1, $2, $3, $4, 'default', 'POST', '/', false, 'completed')`,
    [row.started_at, row.id, row.team_id, row.key_id],
  );
  const { code, stdout } = await runHere(['journal', 'drain', dir, '--kept', '--json'], env);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([{ put_back: 1, kept_files: 1 }]);
  expect(await readdir(join(dir, 'journal'))).toEqual([]);
  const rows = await database.query<{ id: string }>('SELECT id FROM request_log WHERE id = ANY ($1)', [
    [there[0]!.id, lost[0]!.id, id],
  ]);
  expect(rows.map((found) => found.id).sort()).toEqual([there[0]!.id, lost[0]!.id].sort());
  // Its outcome is unknown to a duplicate request.
  const records = await database.query('SELECT call_id, answer, lease_until FROM idempotency_record');
  expect(records).toEqual([{ call_id: lost[0]!.id, answer: null, lease_until: -Infinity }]);
});

it('keeps the journal while it holds a row far ahead of the database’s clock, and writes the others', async () => {
  const run = join(dir, 'journal', uuidv7());
  await mkdir(run, { recursive: true });
  const [near] = recordsOf('begun');
  const msecs = Date.now() + 10 * DAY_MS;
  const far = { ...near!, id: uuidv7({ msecs }), started_at: new Date(msecs).toISOString() };
  await writeFile(join(run, '00000001.log'), Buffer.concat([far, near!].map(encodeLine)));
  const { code, stderr } = await runHere(['journal', 'drain', dir], { DATABASE_URL: database.url });
  expect([code, stderr]).toEqual([1, expect.stringContaining(`row ${far.id} starts at ${far.started_at}`)]);
  expect(await readdir(join(dir, 'journal'))).toHaveLength(1);
  const rows = await database.query<{ id: string }>('SELECT id FROM request_log WHERE id = ANY ($1)', [
    [near!.id, far.id],
  ]);
  expect(rows).toEqual([{ id: near!.id }]);
});

it('rejects a folder that has no journal', async () => {
  const { code, stderr } = await runHere(['journal', 'status', join(dir, 'journal')]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('there is no journal in')]);
});

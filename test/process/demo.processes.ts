import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/eventually.js';
import { bareEnvironment, Process } from '../support/process.js';

const ROOT = resolve(__dirname, '../..');
let temporary: string;

beforeAll(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'postern-demo-test-'));
  await chmod(temporary, 0o755); // for the account that Postgres runs as when these tests run as root
});
afterAll(() => rm(temporary, { recursive: true, force: true }));

/** The demo after its preparations (`npm test` has made them), with settings around that are not meant for it. */
function demo(): Process {
  const args = ['scripts/demo/run.mjs', 'dist/src/start.js'].map((path) => resolve(ROOT, path));
  return new Process(process.execPath, args, {
    cwd: ROOT,
    env: {
      ...bareEnvironment(),
      TMPDIR: temporary,
      DATABASE_URL: 'nonsense',
      PORT: '1',
      OPENAI_BASE_URL: 'http://127.0.0.1:1',
    },
  });
}

it('makes a JSON and a streamed call, shows their rows and leaves nothing behind', async () => {
  const run = demo();
  expect(await run.ended).toEqual({ code: 0, signal: null });
  expect(run.stderr).toBe('');
  expect(run.stdout).toContain('A small gate at the back of a castle');
  expect(run.stdout).toContain('> One, two, three, four, five, six, seven, eight, nine, ten.\n');
  expect(run.stdout).toMatch(/\b10 chunks\b/);
  const rows = run.stdout
    .split('\n')
    .filter((line) => / POST \/v1\/chat\/completions +200 +completed /.test(line));
  expect(rows.map((row) => / completed +(yes|no) /.exec(row)?.[1])).toEqual(['no', 'yes']);
  expect(await readdir(temporary)).toEqual([]);
});

it('removes everything when it is stopped in the middle of the stream', async () => {
  // The stream may be over before a busy machine gets to the signal.
  const address = await eventually(async () => {
    const run = demo();
    await run.until(/> One,/);
    const url = new URL((await run.until(/(http\S+) made its first gateway key/))[1]!);
    run.signal('SIGINT');
    const ended = await run.ended;
    if (ended.code === 0) return null;
    expect(ended).toEqual({ code: 130, signal: null });
    return url;
  });
  expect(await readdir(temporary)).toEqual([]);
  await expect(fetch(address)).rejects.toThrow();
});

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDataDir } from '../../src/platform/data-dir.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runCli } from './run-cli.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

// Other tests of commands rely on it: they run them in their own process.
describe('a command in a process of its own prints to the byte, and exits with, what one in this process does', () => {
  it.each([
    ['help', ['keys', 'create', '--help']],
    ['an unknown command', ['nonsense']],
    ['a value that is rejected', ['limits', 'set', 'search']],
  ])('%s', async (_, args) => {
    expect(await runCli(args)).toEqual(await runHere(args));
  });

  it('a list', async () => {
    const env = { DATABASE_URL: database.url };
    expect(await runHere(['teams', 'create', 'search'], env)).toMatchObject({ code: 0, stderr: '' });
    const listed = await runHere(['teams', 'list'], env);
    expect(listed.stdout).toContain('search');
    expect(await runCli(['teams', 'list'], env)).toEqual(listed);
  });

  it('a secret on standard input', async () => {
    const env = { DATABASE_URL: database.url };
    const here = await runHere(['keys', 'find'], env, undefined, 'ptn_0123456789\n');
    expect(here).toMatchObject({ code: 1, stdout: '' });
    expect(here.stderr).toContain('not a gateway key');
    expect(await runCli(['keys', 'find'], env, undefined, 'ptn_0123456789\n')).toEqual(here);
  });

  it('an error of Node', async () => {
    const env = { DATABASE_URL: 'postgres://u:s3cret@127.0.0.1:1/postern' };
    const here = await runHere(['keys', 'list'], env);
    expect(here.stderr).toContain('Postgres cannot be reached');
    expect(await runCli(['keys', 'list'], env)).toEqual(here);
  });
});

it('"journal drain" leaves a volume alone that another process is using', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'postern-volume-'));
  const used = await openDataDir(dir);
  await mkdir(join(dir, 'journal'));
  await used.hold();
  const { code, stderr } = await runCli(['journal', 'drain', dir], { DATABASE_URL: database.url });
  expect([code, stderr]).toEqual([1, expect.stringContaining(`pid ${process.pid}`)]);
  used.release();
  await rm(dir, { recursive: true });
});

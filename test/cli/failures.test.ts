import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runHere } from './run-here.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('postern', () => {
  it.each([['--help'], ['keys', '--help'], ['keys', 'create', '--help'], ['requests', 'list', '--help']])(
    'helps with %s %s %s and exits 0',
    async (...args) => {
      const { code, stdout } = await runHere(args);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Usage: \.\/postern /);
    },
  );

  it('gives examples', async () => {
    for (const args of [
      [],
      ['keys', 'create'],
      ['keys', 'list'],
      ['requests', 'list'],
      ['teams', 'create'],
    ]) {
      expect((await runHere([...args, '--help'])).stdout).toMatch(/Examples?:\n {2}\.\/postern /);
    }
  });

  it.each([[], ['keys'], ['nonsense'], ['keys', 'nonsense']])('exits 1 for %j', async (...args) => {
    expect(await runHere(args.flat())).toMatchObject({ code: 1, stdout: '' });
  });

  it('makes no database where there is none', async () => {
    const { code, stderr } = await runHere(['keys', 'list'], {}, folder);
    expect(code).toBe(1);
    expect(stderr).toContain('run npm start first');
    expect(await readdir(folder)).toEqual([]);
  });

  it('leaves a folder alone that is not its own', async () => {
    await writeFile(join(folder, 'mine.txt'), 'mine');
    expect(await runHere(['keys', 'list'], { DATA_DIR: folder })).toMatchObject({ code: 1 });
    expect(await readdir(folder)).toEqual(['mine.txt']);
  });

  it.each([
    ['postgres://u:s3cret@127.0.0.1:1/postern', 'Postgres cannot be reached'],
    ['mysql://u:s3cret@127.0.0.1/postern', 'DATABASE_URL: must look like postgres://'],
  ])('says in one line what is wrong with %s, and no password', async (url, message) => {
    const { code, stdout, stderr } = await runHere(['keys', 'list'], { DATABASE_URL: url });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('s3cret');
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  it('names a missing database and a rejected password', async () => {
    const url = new URL(process.env.POSTERN_TEST_SERVER!);
    url.pathname = '/no_such_database';
    expect((await runHere(['keys', 'list'], { DATABASE_URL: url.href })).stderr).toContain('does not exist');
  });
});

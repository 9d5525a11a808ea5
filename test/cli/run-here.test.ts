import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Target } from '../../src/cli/api.js';
import { local } from '../../src/cli/connect.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createDatabase();
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await database.drop();
});

/** What a run in this process could leave changed. */
const surroundings = () => [
  process.env,
  process.cwd(),
  process.stdin,
  process.stdout,
  process.stderr,
  process.exitCode,
  // oxlint-disable-next-line typescript/unbound-method -- compared, not called
  process.exit,
  console,
  Logger['staticInstanceRef'],
  process.listenerCount('SIGINT'),
];

describe('a command in this process', () => {
  it('leaves everything as it was, one after another', async () => {
    const before = surroundings();
    const ran = await Promise.all([
      runHere(['--help']),
      runHere(['nonsense']),
      runHere(['teams', 'list'], { DATABASE_URL: database.url }, folder),
    ]);
    expect(ran.map(({ code }) => code)).toEqual([0, 1, 0]);
    expect(ran.map(({ stderr }) => stderr === '')).toEqual([true, false, true]);
    surroundings().forEach((value, index) => expect(value).toBe(before[index]));
  });

  it('opens an application and closes it, in a folder of its own; else the commands of an environment have one', async () => {
    const open = jest.spyOn(local, 'open');
    const env = { DATABASE_URL: database.url };
    try {
      expect(await runHere(['teams', 'create', 'first'], env, folder)).toMatchObject({ code: 0, stderr: '' });
      expect(await runHere(['teams', 'create', 'second'], env)).toMatchObject({ code: 0, stderr: '' });
      expect((await runHere(['teams', 'list'], env)).stdout).toMatch(/^second .*\nfirst /m);
      expect((await runHere(['teams', 'create', 'third'], env, folder)).code).toBe(0);
      expect((await runHere(['teams', 'list'], env)).stdout).toMatch(/^third .*\nsecond .*\nfirst /m);
      const opened = await Promise.all(open.mock.results.map(({ value }) => value as Promise<Target>));
      const answers = opened.map(({ url }) =>
        fetch(url).then(
          ({ status }) => status,
          () => 'closed',
        ),
      );
      expect(await Promise.all(answers)).toEqual(['closed', 404, 'closed']);
    } finally {
      open.mockRestore();
    }
  });
});

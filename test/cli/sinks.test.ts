import { randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

const MASTER_KEY = randomBytes(32).toString('base64');
let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const cli = (args: string[], input = '') =>
  runHere(['sinks', ...args], { DATABASE_URL: database.url, MASTER_KEY }, undefined, input);

describe('postern sinks', () => {
  it('adds, lists, pauses, resumes, replays and removes a sink by its name', async () => {
    const add = [
      'add',
      'receiver',
      'http',
      '--url',
      'https://rows.example.com/',
      '--secret',
      '--from',
      'now',
    ];
    const added = await cli(add, 'canary-secret\n');
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toContain('Added sink receiver (https://rows.example.com/).');

    expect(await cli(['pause', 'receiver'])).toMatchObject({ code: 0, stdout: 'Paused sink receiver.\n' });
    expect((await cli(['list'])).stdout).toMatch(/^receiver +http +paused /m);
    expect(await cli(['resume', 'receiver'])).toMatchObject({ code: 0, stdout: 'Resumed sink receiver.\n' });
    const replayed = await cli(['replay', 'receiver', '--from', '2026-01-31']);
    expect(replayed).toMatchObject({ code: 0, stderr: '' });
    expect(replayed.stdout).toMatch(/^Sink receiver gets the rows from 2026-01-\S+ on again\.\n/);
    expect(await cli(['remove', 'receiver', '--yes'])).toMatchObject({ code: 0, stderr: '' });
    expect((await cli(['list', '--json'])).stdout).not.toContain('receiver');
    expect((await cli(['pause', 'receiver'])).stderr).toContain('no sink has this name or id');

    const { stdout } = await runHere(['audit', 'list', '--json'], { DATABASE_URL: database.url });
    expect(stdout).not.toContain('canary');
  });
});

import { Logger } from '@nestjs/common';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

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
      runHere(['teams', 'list'], { DATABASE_URL: database.url }),
    ]);
    expect(ran.map(({ code }) => code)).toEqual([0, 1, 0]);
    expect(ran.map(({ stderr }) => stderr === '')).toEqual([true, false, true]);
    surroundings().forEach((value, index) => expect(value).toBe(before[index]));
  });
});

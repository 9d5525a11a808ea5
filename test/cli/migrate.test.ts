import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase({ empty: true });
});
afterEach(() => database.drop());

describe('postern on a database that is not migrated', () => {
  it('migrates first', async () => {
    const { code, stdout } = await runHere(['teams', 'create', 'early'], { DATABASE_URL: database.url });
    expect(code).toBe(0);
    expect(stdout).toContain('Created team early');
  });

  it('with MIGRATE=off leaves that to postern migrate', async () => {
    const env = { DATABASE_URL: database.url, MIGRATE: 'off' };
    const rejected = await runHere(['teams', 'list'], env);
    expect(rejected).toMatchObject({ code: 1, stdout: '' });
    expect(rejected.stderr).toContain('postern migrate');
    const migrated = await runHere(['migrate'], env);
    expect(migrated).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Migrated: Initial/) as string,
    });
    expect(await runHere(['migrate'], env)).toMatchObject({
      code: 0,
      stdout: 'The database is up to date.\n',
    });
    expect(await runHere(['migrate', '--json'], env)).toMatchObject({ stdout: '{\n  "migrated": []\n}\n' });
    expect(await runHere(['teams', 'list'], env)).toMatchObject({ code: 0, stdout: 'No teams found.\n' });
  });
});

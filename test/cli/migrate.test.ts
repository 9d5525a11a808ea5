import { createDatabase, type TestDatabase } from '../support/database.js';
import { runCli } from './run-cli.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase({ empty: true });
});
afterEach(() => database.drop());

describe('postern on a database that is not migrated', () => {
  it('migrates first', async () => {
    const { code, stdout } = await runCli(['teams', 'create', 'early'], { DATABASE_URL: database.url });
    expect(code).toBe(0);
    expect(stdout).toContain('Made the team early');
  });

  it('with MIGRATE=off leaves that to postern migrate', async () => {
    const env = { DATABASE_URL: database.url, MIGRATE: 'off' };
    const refused = await runCli(['teams', 'list'], env);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('postern migrate');
    const migrated = await runCli(['migrate'], env);
    expect(migrated).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Migrated: Initial/) as string,
    });
    expect(await runCli(['migrate'], env)).toMatchObject({
      code: 0,
      stdout: 'The database is up to date.\n',
    });
    expect(await runCli(['migrate', '--json'], env)).toMatchObject({ stdout: '{\n  "migrated": []\n}\n' });
    expect(await runCli(['teams', 'list'], env)).toMatchObject({ code: 0, stdout: 'None.\n' });
  });
});

import { createDatabase, type TestDatabase } from '../support/database.js';
import { type Ran, runCli } from './run-cli.js';

let database: TestDatabase;
const cli = (...args: string[]): Promise<Ran> => runCli(args, { DATABASE_URL: database.url });

beforeAll(async () => {
  database = await createDatabase();
  expect(await cli('teams', 'create', 'search')).toMatchObject({ code: 0, stderr: '' });
});
afterAll(() => database.drop());

interface KeyJson {
  id: string;
  key: string;
  prefix: string;
}

const createJson = async (name: string): Promise<KeyJson> =>
  JSON.parse((await cli('keys', 'create', '--team', 'search', '--name', name, '--json')).stdout) as KeyJson;

describe('postern keys', () => {
  it('creates a key and prints it once, with a line that says so', async () => {
    const { code, stdout, stderr } = await cli('keys', 'create', '--team', 'search', '--name', 'ci');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.match(/ptn_[0-9A-Za-z]{38}/g)).toHaveLength(1);
    expect(stdout).toContain('will not be shown again');
  });

  it('creates a key with everything said and prints one JSON object', async () => {
    const options = [
      '--expires-at',
      '2093-01-31T12:00:00Z',
      '--providers',
      'default, azure',
      '--endpoints',
      'all',
    ];
    const { code, stdout } = await cli(
      ...[
        'keys',
        'create',
        '--team',
        'search',
        '--name',
        'full',
        '--idempotency',
        'replay',
        '--json',
        ...options,
      ],
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      name: 'full',
      team: 'search',
      expires_at: '2093-01-31T12:00:00.000Z',
      providers: ['default', 'azure'],
      endpoints: 'all',
      idempotency: 'replay',
      key: expect.stringMatching(/^ptn_/) as string,
    });
  });

  it('lists keys without their secrets, as a table and as JSON', async () => {
    const { key, ...shown } = await createJson('listed');
    const people = await cli('keys', 'list', '--prefix', shown.prefix);
    expect(people.stdout).toMatch(/^PREFIX +NAME +TEAM +STATUS /);
    expect(people.stdout.split('\n')[1]).toMatch(
      new RegExp(`^${shown.prefix} +listed +search +active +- +inference +all +- +${shown.id}$`),
    );
    const programs = await cli('keys', 'list', '--prefix', shown.prefix, '--json');
    expect(JSON.parse(programs.stdout)).toEqual({ data: [shown], next_cursor: null });
    expect(people.stdout + programs.stdout).not.toContain(key);
  });

  it('revokes a key, again and again', async () => {
    const { id } = await createJson('ended');
    const first = await cli('keys', 'revoke', id);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toContain('revoked');
    expect((await cli('keys', 'revoke', id)).stdout).toBe(first.stdout);
    const { stdout } = await cli('keys', 'list', '--status', 'revoked', '--json');
    expect((JSON.parse(stdout) as { data: KeyJson[] }).data.map((key) => key.id)).toEqual([id]);
  });

  it('says how to go on when there are more', async () => {
    await createJson('one of more');
    const { stdout } = await cli('keys', 'list', '--limit', '1');
    const cursor = /--cursor (\S+)/.exec(stdout)![1]!;
    expect((await cli('keys', 'list', '--limit', '1', '--cursor', cursor)).stdout).not.toContain(
      'one of more',
    );
  });

  it.each([
    ['an unknown team', ['--team', 'nobody', '--name', 'x'], 'team: no team has this name or id'],
    ['a name in use', ['--team', 'search', '--name', 'taken'], 'name: this team has a key of this name'],
    [
      'a time without zone',
      ['--team', 'search', '--name', 'x', '--expires-at', '2093-01-01'],
      '--expires-at must',
    ],
    [
      'an odd rule',
      ['--team', 'search', '--name', 'x', '--endpoints', 'some'],
      '--endpoints must be inference or all',
    ],
    [
      'an unknown option',
      ['--team', 'search', '--name', 'x', '--colour', 'red'],
      "unknown option '--colour'",
    ],
    ['no name', ['--team', 'search'], "required option '--name <name>' not specified"],
  ])('exits 1 for %s and says what would do', async (_, options, message) => {
    await cli('keys', 'create', '--team', 'search', '--name', 'taken');
    const { code, stdout, stderr } = await cli('keys', 'create', ...options);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});

import { userInfo } from 'node:os';
import type { KeysService } from '../../src/keys/keys.service.js';
import { type KeysDatabase, keysService, openKeysDatabase, TESTER } from '../keys/data-source.js';
import { storeSignInToken, storeTokens, storeTrust } from '../identity/stored-tokens.js';
import type { TestDatabase } from '../support/database.js';
import type { Ran } from './run-cli.js';
import { runHere } from './run-here.js';

let at: KeysDatabase;
let database: TestDatabase;
let keys: KeysService;
const cli = (...args: string[]): Promise<Ran> => runHere(args, { DATABASE_URL: database.url });

beforeAll(async () => {
  at = await openKeysDatabase();
  ({ database } = at);
  keys = keysService(at.dataSource);
  expect(await cli('teams', 'create', 'search')).toMatchObject({ code: 0, stderr: '' });
  await createJson('taken');
});
afterAll(() => at.close());

interface KeyJson {
  id: string;
  key: string;
  prefix: string;
}

/** A key as `postern keys create --json` prints it, without the time that a command takes. */
async function createJson(name: string): Promise<KeyJson> {
  const grant = { expiresAt: null, providers: null, endpoints: 'inference', idempotency: 'forward' } as const;
  const { key, secret } = await keys.create({ team: 'search', name, ...grant }, TESTER);
  return JSON.parse(JSON.stringify({ ...key, key: secret })) as KeyJson;
}

describe('postern keys', () => {
  it('creates a key and prints it once, with a line that says so', async () => {
    const { code, stdout, stderr } = await cli('keys', 'create', '--team', 'search', '--name', 'ci');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.match(/ptn_[0-9A-Za-z]{38}/g)).toHaveLength(1);
    expect(stdout).toContain('will not show it again');
  });

  it('creates a key with everything said and prints one JSON object', async () => {
    await database.query(
      "INSERT INTO provider (id, name, url) VALUES (gen_random_uuid(), 'azure', 'http://127.0.0.1:9')",
    );
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
    expect(people.stdout).toMatch(/^PREFIX +KEY +STATUS /);
    expect(people.stdout.split('\n')[1]).toMatch(
      new RegExp(`^${shown.prefix} +search/listed +active +- +- +inference +all +${shown.id}$`),
    );
    const programs = await cli('keys', 'list', '--prefix', shown.prefix, '--json');
    expect(JSON.parse(programs.stdout)).toEqual({ data: [shown], next_cursor: null });
    expect(people.stdout + programs.stdout).not.toContain(key);
  });

  it('finds keys by a part of a name, and those that expire or that nobody uses', async () => {
    const { id } = await createJson('Findable');
    const trial = await createJson('trial');
    await database.query(`UPDATE gateway_key SET expires_at = now() + interval '3 days' WHERE id = $1`, [
      trial.id,
    ]);
    const listed = async (...filter: string[]) => {
      const { stdout } = await cli('keys', 'list', ...filter, '--json');
      return (JSON.parse(stdout) as { data: { name: string }[] }).data.map(({ name }) => name);
    };
    expect(await listed('--name', 'sea/findab')).toEqual(['Findable']);
    expect(await listed('--name', 'nothing like it')).toEqual([]);
    expect(await listed('--expires-before', '7d')).toEqual(['trial']);
    expect((await listed('--sort', 'expires'))[0]).toBe('trial');
    await database.query(`UPDATE gateway_key SET created_at = now() - interval '91 days' WHERE id = $1`, [
      id,
    ]);
    expect(await listed('--unused-since', '90d')).toEqual(['Findable']);
    expect((await cli('keys', 'list', '--name', `ptn_${'a'.repeat(38)}`)).stderr).toMatch(
      /^error: --name must be a part of a name, or the first characters of a key; never send a whole key/,
    );
    const teams = await cli('teams', 'list', '--name', 'SEAR', '--json');
    expect(JSON.parse(teams.stdout)).toMatchObject({ data: [{ name: 'search' }] });
  });

  it('revokes a key, again and again', async () => {
    const { id } = await createJson('ended');
    const first = await cli('keys', 'revoke', id);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toContain('Revoked key search/ended (');
    expect((await cli('keys', 'revoke', id)).stdout).toBe(
      first.stdout.replace('Revoked key', 'Revoked already: key'),
    );
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
    ['an unknown team', ['--team', 'nobody', '--name', 'x'], 'error: --team: no team has this name or id'],
    [
      'a name in use',
      ['--team', 'search', '--name', 'taken'],
      'error: --name: this team already has a key with this name',
    ],
    [
      'a time that is none',
      ['--team', 'search', '--name', 'x', '--expires-at', 'soon'],
      'error: --expires-at must be a duration from now (24h, 30d, 2w, 6M, 1y), a date (2030-01-31)',
    ],
    [
      'an odd rule',
      ['--team', 'search', '--name', 'x', '--endpoints', 'some'],
      'error: --endpoints must be inference, own or all',
    ],
    [
      'a cache for no time',
      ['--team', 'search', '--name', 'x', '--cache', '0'],
      'error: --cache must be an integer from 1 to 604800 (7 days)',
    ],
    [
      'a cache for nobody known',
      ['--team', 'search', '--name', 'x', '--cache', '60', '--cache-shared', 'org'],
      'error: --cache-shared must be key or team',
    ],
    [
      'an unknown option',
      ['--team', 'search', '--name', 'x', '--colour', 'red'],
      "unknown option '--colour'",
    ],
    ['no name', ['--team', 'search'], "required option '--name <name>' not specified"],
  ])('exits 1 for %s and says what would do', async (_, options, message) => {
    const { code, stdout, stderr } = await cli('keys', 'create', ...options);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  it('shows one key, and exits 1 for none', async () => {
    const { key, ...shown } = await createJson('shown');
    const people = await cli('keys', 'show', shown.id);
    expect(people).toMatchObject({ code: 0, stderr: '' });
    expect(people.stdout).toMatch(
      new RegExp(`^id +${shown.id}\nname +shown\nteam +search\nstatus +active\n`),
    );
    expect(JSON.parse((await cli('keys', 'show', shown.id, '--json')).stdout)).toEqual(shown);
    expect(people.stdout).not.toContain(key);
    expect(await cli('keys', 'show', 'nonsense')).toMatchObject({ code: 1, stdout: '' });
  });

  it('says what happens to calls whose client disconnects, and changes it', async () => {
    const rule = ({ stdout }: Ran) => (JSON.parse(stdout) as { on_disconnect: string | null }).on_disconnect;
    const create = ['keys', 'create', '--team', 'search', '--json', '--name'];
    const made = await cli(...create, 'stops', '--on-disconnect', 'finish');
    expect(rule(made)).toBe('finish');
    const { id } = JSON.parse(made.stdout) as { id: string };
    expect((await cli('keys', 'show', id)).stdout).toMatch(/^on disconnect +finish$/m);
    for (const [given, stored] of [
      ['cancel', 'cancel'],
      ['default', null],
    ] as const)
      expect(rule(await cli('keys', 'update', id, '--on-disconnect', given, '--json'))).toBe(stored);
    expect((await cli('keys', 'show', id)).stdout).toMatch(/^on disconnect +as the provider says$/m);
    expect(rule(await cli(...create, 'follows'))).toBeNull();
    const wrong = await cli('keys', 'update', id, '--on-disconnect', 'maybe');
    const choices = 'Allowed choices are cancel, finish, default.';
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining(choices)]);
    expect(rule(await cli('keys', 'show', id, '--json'))).toBeNull();
    for (const key of ['search/stops', 'search/follows']) await cli('keys', 'revoke', key, '--yes');
  });

  it('rotates a key: a new secret once, the old one for the grace', async () => {
    const { id, key } = await createJson('rotated');
    const { code, stdout, stderr } = await cli('keys', 'rotate', id, '--grace-seconds', '3600');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.match(/ptn_[0-9A-Za-z]{38}/g)).toHaveLength(1);
    expect(stdout).not.toContain(key);
    expect(stdout).toMatch(
      /The previous secret stops working at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(in 1 hour\)\./,
    );
    const programs = JSON.parse((await cli('keys', 'rotate', id, '--json')).stdout) as KeyJson;
    expect(programs).toMatchObject({ id, prefix: programs.key.slice(0, 12) });
    const odd = await cli('keys', 'rotate', id, '--grace-seconds', 'soon');
    expect([odd.code, odd.stderr]).toEqual([
      1,
      expect.stringContaining('--grace-seconds must be an integer'),
    ]);
  });

  it('finds whose a leaked secret is, and whether it still works', async () => {
    const { id, key } = await createJson('leaked');
    const env = { DATABASE_URL: database.url };
    const find = (input: string, ...more: string[]) =>
      runHere(['keys', 'find', ...more], env, undefined, input);
    const people = await find(`  ${key}\r\n`);
    expect(people).toMatchObject({ code: 0, stderr: '' });
    expect(people.stdout).toMatch(/name +leaked\nteam +search\nstatus +active/);
    expect(people.stdout).toContain('postern keys rotate search/leaked');
    await cli('keys', 'rotate', id);
    expect(JSON.parse((await find(key, '--json')).stdout)).toMatchObject({
      id,
      team: 'search',
      name: 'leaked',
      status: 'active',
      secret_status: 'ended',
    });
    await cli('keys', 'revoke', id);
    expect((await find(key)).stdout).toMatch(/status +revoked/);
    const { prefix } = JSON.parse((await cli('keys', 'show', 'search/leaked', '--json')).stdout) as KeyJson;
    expect((await find(`${prefix}\n`)).stderr).toBe(
      `error: this is only the beginning of a key; use ./postern keys show ${prefix}\n`,
    );
    for (const [input, reason] of [
      [`ptn_${'a'.repeat(38)}`, 'not a gateway key'],
      ["' OR 1=1 --", 'not a gateway key'],
      ['', 'no secret on standard input'],
      // A right checksum that no key has: a key of another gateway.
      [`ptn_${'0'.repeat(32)}3P7K1K`, 'no key of this gateway'],
    ]) {
      const none = await find(input!);
      expect([none.code, none.stdout]).toEqual([1, '']);
      expect(none.stderr).toContain(reason);
      if (input !== '') expect(none.stderr).not.toContain(input!);
    }
  });

  it('says of a token whom it was issued to, and how to end it', async () => {
    const { id } = await createJson('issuing');
    const trustId = await storeTrust(database, id);
    const [job] = await storeTokens(database, { keyId: id, trustId });
    const { token, signInId } = await storeSignInToken(database, id);
    const find = async (input: string) =>
      (await runHere(['keys', 'find'], { DATABASE_URL: database.url }, undefined, input)).stdout;
    const works = await find(job!);
    expect(works).toMatch(new RegExp(`token of trust +trust-${trustId}\nissued to +job\n`));
    expect(works).toContain(`postern trusts disable trust-${trustId}\n`);
    expect(works).not.toContain('keys rotate');
    const person = await find(token);
    expect(person).toMatch(new RegExp(`token of sign-in +${signInId}\nissued to +sso:jane@example.com\n`));
    expect(person).toContain(`postern sign-ins end ${signInId}\n`);
    await database.query('UPDATE trust SET enabled = false WHERE id = $1', [trustId]);
    await database.query(`UPDATE sign_in SET ended_at = now(), end_reason = 'signed_out' WHERE id = $1`, [
      signInId,
    ]);
    expect(await find(job!)).toContain('does not work: its trust is disabled');
    expect(await find(token)).toContain('no longer works: its sign-in or person has ended');
    await database.query('UPDATE gateway_key_secret SET expires_at = now() WHERE key_id = $1', [id]);
    expect(await find(job!)).toContain('This token has expired or was revoked.');
  });

  it('leaves a row in the audit log for each change, with the name of who ran it', async () => {
    const created = await cli('keys', 'create', '--team', 'search', '--name', 'audited', '--json');
    const { id } = JSON.parse(created.stdout) as KeyJson;
    await cli('keys', 'rotate', id);
    await cli('keys', 'revoke', id);
    const rows = await database.query<{ actor: string; action: string; client_ip: string | null }>(
      'SELECT actor, action, client_ip FROM audit_log WHERE subject_id = $1 ORDER BY id',
      [id],
    );
    const actor = `cli:${userInfo().username}`;
    expect(rows).toEqual(
      ['created', 'rotated', 'revoked'].map((action) => ({ actor, action, client_ip: null })),
    );
  });
});

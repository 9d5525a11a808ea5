import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { insertRow } from '../request-log/rows.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import type { Ran } from './run-cli.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

const run = (args: string[], input = ''): Promise<Ran> =>
  runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN }, undefined, input);
/** Splits at spaces; a name with one is given as an argument of its own. */
const cli = (line: string, ...more: string[]) => run([...line.split(' '), ...more]);
const json = async <T>(line: string, ...more: string[]): Promise<T> => {
  const { code, stdout, stderr } = await cli(line, ...more, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
};

interface Key {
  id: string;
  team_id: string;
  prefix: string;
  key: string;
}
const key = (name: string, team = 'default') => json<Key>('keys create', '--team', team, '--name', name);

describe('a key on the command line', () => {
  it('is given by its team and name, its prefix or its ID', async () => {
    await json('teams create', 'a/b');
    const { id, prefix } = await key('c/d', 'a/b');
    await key('named');
    for (const text of [id, prefix, prefix.slice(0, 10), 'a/b/c/d'])
      expect(await json('keys show', text)).toMatchObject({ id, team: 'a/b', name: 'c/d' });
    await insertRow(gateway.database, new Date(), { key_id: id });
    for (const text of [id, prefix, 'a/b/c/d']) {
      expect(await json('requests list --key', text)).toMatchObject({ data: [{ key_id: id }] });
      expect(await json('usage --key', text)).toMatchObject({ data: [{ calls: 1 }] });
    }
  });

  it('is not guessed', async () => {
    const { key: secret } = await key('secret');
    for (const [text, message] of [
      ['default/nobody', 'no key is called "default/nobody"; give team/name, the prefix'],
      ['nobody/named', 'no key is called'],
      ['named', 'no key is called'],
      ['ptn_', 'several keys begin with ptn_ (default/secret, '],
      ['ptn_00000000', 'no key begins with ptn_00000000'],
      [secret, 'a key is given by its first 12 characters; never type a whole one'],
      ['01890a5d-ac96-774b-bcce-b302099a8057', '<key>: no key has this id'],
    ] as const) {
      const { code, stdout, stderr } = await cli('keys rotate', text);
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(`error: ${message}`)]);
      expect(stderr).not.toContain(secret);
    }
  });
});

describe('postern keys', () => {
  it('update changes what is given and nothing else', async () => {
    await key('before');
    for (const name of ['openai', 'groq']) await run(['providers', 'add', name], 'sk-some');
    const first = await json(
      'keys update default/before --name after --expires-at 30d --providers openai,groq',
    );
    expect(first).toMatchObject({ name: 'after', providers: ['openai', 'groq'], endpoints: 'inference' });
    const days = (Date.parse((first as { expires_at: string }).expires_at) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(29.9);
    expect(days).toBeLessThan(30.1);
    const second = [
      '--expires-at',
      'never',
      '--providers',
      'all',
      '--endpoints',
      'all',
      '--idempotency',
      'replay',
    ];
    expect(await json('keys update default/after', ...second)).toMatchObject({
      name: 'after',
      expires_at: null,
      providers: null,
      endpoints: 'all',
      idempotency: 'replay',
    });
    const models = ['--models', 'gpt-5*, o3', '--stream-usage', 'require'];
    expect(await json('keys update default/after', ...models)).toMatchObject({
      models: ['gpt-5*', 'o3'],
      stream_usage: 'require',
    });
    expect((await cli('keys show default/after')).stdout).toMatch(
      /^models +gpt-5\*,o3\nstream usage +require$/m,
    );
    expect(await json('keys update default/after --models all')).toMatchObject({ models: null });
    expect(await json('keys update default/after --models none')).toMatchObject({ models: [] });
    const none = await cli('keys update default/after');
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringContaining('error: nothing to change: give --name'),
    ]);
    expect((await cli('keys update default/after --endpoints some')).stderr).toBe(
      'error: --endpoints must be inference, own or all\n',
    );
  });

  it('disable and enable a key', async () => {
    const { key: secret, prefix } = await key('switched');
    const status = async () =>
      (await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })).status;
    expect(await cli('keys disable default/switched')).toEqual({
      code: 0,
      stderr: '',
      stdout: `Key default/switched (${prefix}…) is disabled.\n`,
    });
    await eventually(async () => (await status()) === 401);
    expect((await cli('keys enable default/switched')).stdout).toContain('is active.');
    await eventually(async () => (await status()) === 503);
  });

  it('show until when an older secret works after a rotation', async () => {
    await key('rotated');
    expect((await cli('keys show default/rotated')).stdout).not.toContain('previous secret');
    await cli('keys rotate default/rotated --grace-seconds 3600');
    const { previous_secret_expires_at: until } = await json<{ previous_secret_expires_at: string }>(
      'keys show default/rotated',
    );
    const minutes = (Date.parse(until) - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(55);
    expect(minutes).toBeLessThanOrEqual(60);
    const { stdout } = await cli('keys show default/rotated');
    expect(stdout).toContain(`previous secret  works until ${until.slice(0, 10)} ${until.slice(11, 19)} UTC`);
    await cli('keys rotate default/rotated');
    expect(await json('keys show default/rotated')).toMatchObject({ previous_secret_expires_at: null });
  });

  it('print with --quiet only the key', async () => {
    const { stdout } = await cli('keys create --team default --name quiet -q');
    expect(stdout).toMatch(/^ptn_[0-9A-Za-z]{38}\n$/);
  });
});

describe('postern teams', () => {
  it('show, rename, disable and enable a team by its name or ID', async () => {
    const { id } = await json<{ id: string }>('teams create', 'Größe 1');
    expect(await json('teams show', 'Größe 1')).toMatchObject({ id });
    expect(await json('teams update', id, '--name', 'sizes')).toMatchObject({ id, name: 'sizes' });
    expect(await json('teams update sizes --models claude-*')).toMatchObject({ models: ['claude-*'] });
    expect((await cli('teams update sizes')).stderr).toMatch(/^error: nothing to change/);
    expect(await cli('teams disable sizes')).toMatchObject({ code: 0, stdout: 'Team sizes is disabled.\n' });
    expect((await cli('teams list')).stdout).toMatch(/^sizes +disabled /m);
    expect(await json('teams enable', id)).toMatchObject({ disabled: false });
    expect(await json('teams update sizes --self-service 3/90d:50.5/month')).toMatchObject({
      self_service: {
        keys_per_user: 3,
        max_days: 90,
        budget_usd_per_month: '50.5',
        providers: null,
        sign_in_within_days: null,
      },
    });
    expect((await cli('teams show sizes')).stdout).toMatch(/^keys of members +3\/90d:50\.5\/month$/m);
    expect(await json('teams update sizes --self-service 1/7d')).toMatchObject({
      self_service: {
        keys_per_user: 1,
        max_days: 7,
        budget_usd_per_month: null,
        providers: null,
        sign_in_within_days: null,
      },
    });
    expect(await json('teams update sizes --self-service 1/7d:5/month:default')).toMatchObject({
      self_service: { budget_usd_per_month: '5', providers: ['default'] },
    });
    expect((await cli('teams show sizes')).stdout).toMatch(/^keys of members +1\/7d:5\/month:default$/m);
    expect(await json('teams update sizes --self-service 1/7d:5/month:sign-in/14d:default')).toMatchObject({
      self_service: { budget_usd_per_month: '5', providers: ['default'], sign_in_within_days: 14 },
    });
    expect((await cli('teams show sizes')).stdout).toMatch(
      /^keys of members +1\/7d:5\/month:sign-in\/14d:default$/m,
    );
    expect((await cli('teams update sizes --self-service 1/7d:nobody')).stderr).toContain(
      'there is no provider or route nobody',
    );
    expect((await cli('teams update sizes --self-service 3')).stderr).toMatch(
      /^error: --self-service must be/,
    );
    expect((await cli('teams update sizes --self-service 3/0d')).stderr).toContain('from 1 to 3650');
    expect(await json('teams update sizes --self-service none')).toMatchObject({ self_service: null });
    expect((await cli('teams show sizes')).stdout).not.toContain('keys of members');
    expect(await json('teams update sizes --sign-in 7d/30m:50/month:default')).toMatchObject({
      sign_in: { days: 7, token_minutes: 30, budget_usd_per_month: '50', providers: ['default'] },
    });
    expect((await cli('teams show sizes')).stdout).toMatch(/^sign-in +7d\/30m:50\/month:default$/m);
    for (const endpoints of ['own', 'all']) {
      await gateway.admin('PATCH', '/teams/sizes', { sign_in: { days: 7, endpoints } });
      expect((await cli('teams show sizes')).stdout).toMatch(
        new RegExp(`^sign-in +7d/60m, ${endpoints} endpoints$`, 'm'),
      );
    }
    expect((await cli('teams update sizes --sign-in often')).stderr).toMatch(/^error: --sign-in must be/);
    expect((await cli('teams update sizes --sign-in 91d')).stderr).toBe(
      'error: --sign-in: days must be an integer from 1 to 90\n',
    );
    const settings = join(gateway.dataDir, 'claude-code.json');
    writeFileSync(settings, '{"hooks":{}}');
    expect((await cli(`teams update sizes --claude-code ${settings}`)).stderr).toMatch(
      /^error: --claude-code: hooks: unknown field/,
    );
    expect((await cli('teams update sizes --claude-code absent.json')).stderr).toContain('cannot be read');
    expect(await json('teams update sizes --sign-in none')).toMatchObject({ sign_in: null });
    const none = await cli('teams show nobody');
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringMatching(/^error: <team>: no team has this name or id/),
    ]);
  });
});

describe('postern providers', () => {
  const secretOf = async () => {
    const [row] = await gateway.database.query<{ sealed: string | null }>(
      "SELECT encode(sealed_secret, 'hex') AS sealed FROM provider WHERE name = 'mine'",
    );
    return row!.sealed;
  };

  it('update a provider and its secret, which is never an argument', async () => {
    await run(['providers', 'add', 'mine', '--url', 'https://one.example'], 'sk-one');
    const before = await secretOf();
    const update = (...args: string[]) => run(['providers', 'update', 'mine', ...args], 'sk-two\n');
    expect(await update('--secret')).toMatchObject({ code: 0, stderr: '' });
    const after = await secretOf();
    expect(after).not.toBe(before);
    const moved = await update('--url', 'https://two.example');
    expect([moved.code, moved.stderr]).toEqual([
      1,
      expect.stringMatching(/^error: --secret must be sent again/),
    ]);
    expect(
      await update('--url', 'https://two.example', '--auth', 'api-key', '--secret', '--default'),
    ).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Updated provider mine (https://two.example).') as string,
    });
    expect(await json('providers show mine')).toMatchObject({
      auth: 'api-key',
      default: true,
      secret_state: 'sealed',
    });
    expect(await update('--no-secret', '--no-default')).toMatchObject({ code: 0, stderr: '' });
    expect(await json('providers show mine')).toMatchObject({ default: false, secret_state: 'none' });
    const asArgument = await update('--secret', 'sk-argument');
    expect([asArgument.code, asArgument.stderr]).toEqual([1, expect.stringContaining('too many arguments')]);
    expect((await update()).stderr).toContain('error: nothing to change: give --url');
  });

  it('disable and enable a provider', async () => {
    expect((await cli('providers disable mine')).stdout).toBe('Provider mine is disabled.\n');
    expect((await cli('providers list')).stdout).toMatch(/^mine .* disabled /m);
    expect((await cli('providers enable mine')).stdout).toBe('Provider mine is enabled.\n');
  });
});

describe('postern audit', () => {
  it('lists who changed what, with filters and times', async () => {
    await json('teams create', 'audited');
    await cli('teams disable audited');
    const { stdout } = await cli('audit list --subject-name audited');
    expect(stdout).toMatch(/^AT +ACTOR +ACTION +SUBJECT +CHANGE +ADDRESS +SUBJECT ID\n/);
    expect(stdout).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d +admin-token +changed +team audited +disabled: false → true +127\.0\.0\.1 /m,
    );
    expect(
      await json(
        'audit list --subject-type team --action created --from 1h --actor admin-token --subject-name audited',
      ),
    ).toMatchObject({
      data: [{ action: 'created', subject_name: 'audited' }],
    });
    expect(await json('audit list --to yesterday')).toEqual({ data: [], next_cursor: null });
  });
});

describe('postern requests show', () => {
  it('shows every column of one call, with the name of its key', async () => {
    const { id: keyId, team_id } = await key('caller');
    const columns = { key_id: keyId, team_id, user_agent: 'a\u001bb' };
    const id = await insertRow(gateway.database, new Date(), columns);
    const { code, stdout } = await cli('requests show', id);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^id +${id}\n`));
    expect(stdout).toMatch(/^user_agent +a\?b$/m);
    expect(stdout).toMatch(/^key +caller$/m);
    expect(await json('requests show', id)).toEqual(await gateway.admin('GET', `/requests/${id}`));
    expect((await cli('requests list')).stdout).toMatch(/ default\/caller +gpt-4o /);
    expect((await cli('requests show', keyId)).stderr).toMatch(
      /^error: <id>: no call in the log has this id/,
    );
  });
});

describe('lists', () => {
  it('print the whole command for the next page, which can be pasted', async () => {
    await json('teams create', "O'Neill & co");
    await key('one', "O'Neill & co");
    await key('two', "O'Neill & co");
    const first = await cli('keys list --limit 1 --team', "O'Neill & co");
    const next = /More results: \.\/postern (.*)\n/.exec(first.stdout)![1]!;
    expect(next).toMatch(/^keys list --limit 1 --team 'O'\\''Neill & co' --cursor [\w-]+$/);
    // As a shell reads it.
    const words = next
      .match(/'[^']*'\\'''?[^']*'|\S+/g)!
      .map((word) => word.replace(/^'|'$/g, '').replace("'\\''", "'"));
    const second = await run(words);
    expect(second.stdout).toContain("O'Neill & co/one");
    expect(second.stdout).not.toContain('More results');
  });

  it('follow every page with --all', async () => {
    await gateway.database.query(
      `INSERT INTO team (id, name) SELECT gen_random_uuid(), 'many ' || i FROM generate_series(1, 600) AS i`,
    );
    await gateway.database.query(
      `UPDATE team SET id = overlay(id::text placing '7' from 15)::uuid WHERE name LIKE 'many %'`,
    );
    const all = await json<{ data: unknown[]; next_cursor: null }>('teams list --all');
    expect(all.next_cursor).toBeNull();
    expect(all.data.length).toBeGreaterThan(600);
    expect((await json<{ data: unknown[] }>('teams list')).data).toHaveLength(50);
  });
});

describe('errors', () => {
  it.each([
    [
      ['providers', 'add', 'Bad Name', '--url', 'https://x.example', '--no-secret'],
      '<name> must be 1 to 63 characters',
    ],
    [['teams', 'create', ''], '<name> must be text of 1 to 100'],
    [['keys', 'create', '--team', 'default', '--name', ''], '--name must be text of 1 to 100'],
    [['requests', 'list', '--from', 'today', '--to', 'yesterday'], '--from ('],
    [['providers', 'show', 'nobody'], '<name>: no provider has this name'],
  ])('of %j name the argument or the option', async (args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.startsWith(`error: ${message}`)).toBe(true);
  });

  it.each([
    [['nonsense'], "error: unknown command 'nonsense'", '--help'],
    [['keys', 'nonsense'], "error: unknown command 'nonsense'", 'keys --help'],
    [['keys', 'lits'], '(Did you mean list?)', 'keys --help'],
    [['reprice'], '(Did you mean ./postern prices reprice?)', '--help'],
    [['reprice', '--help'], '(Did you mean ./postern prices reprice?)', '--help'],
    [['help', 'reprice'], '(Did you mean ./postern prices reprice?)', '--help'],
    [['statement', '-h'], '(Did you mean ./postern usage statement?)', '--help'],
    [['prices', 'nonsense', '--help'], "error: unknown command 'nonsense'", 'prices --help'],
    [['list', '--help'], "error: unknown command 'list'", '--help'],
    [['health'], '(Did you mean ./postern status?)', '--help'],
    [['system'], '(Did you mean ./postern status?)', '--help'],
    [['keys', 'create'], "error: required option '--team <name or id>' not specified", 'keys create --help'],
    [['keys', 'show'], "error: missing required argument 'key'", 'keys show --help'],
  ])('of %j name the help', async (args, message, help) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).toContain(`See ./postern ${help}.\n`);
    // One hint, or none.
    expect(stderr.split('Did you mean').length).toBeLessThan(3);
  });
});

import stringWidth from 'string-width';
import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { plain, runInTerminal, type TerminalOptions } from './run-in-terminal.js';

let gateway: TestGateway;
let env: Record<string, string>;
beforeAll(async () => {
  gateway = await startTestGateway();
  env = { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  await gateway.admin('POST', '/teams', { name: 'Tools & データ' });
  await gateway.createKey({
    team: 'Tools & データ',
    name: 'a-rather-long-name-of-a-key',
    each_end_user: { tokens_per_minute: 200_000, budgets: [{ usd: '1234567.123456789', period: 'month' }] },
  });
  await gateway.admin('POST', '/webhooks', {
    url: 'https://alerts.example.com/a/rather/long/path/of/a/receiver',
    events: ['budget.threshold', 'budget.exhausted', 'key.expiring'],
  });
  const { data } = await gateway.admin<{ data: { id: string; team_id: string }[] }>('GET', '/keys');
  for (const status of [200, 429, 503])
    await insertRow(gateway.database, new Date(), {
      key_id: data[0]!.id,
      team_id: data[0]!.team_id,
      status,
      duration_ms: 123_456,
      model: 'claude-opus-with-a-long-name-20270101',
      prompt_tokens: 1_234_567,
      completion_tokens: 8,
    });
});
afterAll(() => gateway.stop());

const terminal = (args: string, options: TerminalOptions = {}) =>
  runInTerminal(args.split(' '), { ...options, env: { ...env, ...options.env } });

describe('a terminal', () => {
  it.each([
    ['keys list'],
    ['teams list'],
    ['providers list'],
    ['requests list'],
    ['usage --group-by key,model,day'],
    ['audit list'],
    ['limits list'],
    ['webhooks list'],
  ])('of 80 columns shows a table of %s that fits', async (command) => {
    const { code, screen } = await terminal(
      `${command} --limit 2`.replace(/(providers|webhooks) list --limit 2/, '$1 list'),
    );
    expect(code).toBe(0);
    const [table] = plain(screen).split('\n\n');
    for (const line of table!.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(80);
  });

  it('names the columns that do not fit, and shows them in a wider one and with --wide', async () => {
    const narrow = await terminal('requests list');
    expect(plain(narrow.screen)).toContain('too narrow: CALL, PROVIDER, ID. See all with --wide.');
    for (const shown of [
      await terminal('requests list', { columns: 240 }),
      await terminal('requests list --wide'),
    ]) {
      expect(plain(shown.screen)).toMatch(/^STARTED .* CALL +PROVIDER +ID\n/);
      expect(shown.screen).toContain('claude-opus-with-a-long-name-20270101');
    }
  });

  it('has colours for what deserves a look, unless they are not wanted', async () => {
    const { screen } = await terminal('requests list');
    expect(screen).toContain('\u001b[33m429\u001b[39m');
    expect(screen).toContain('\u001b[31m503\u001b[39m');
    expect(screen).not.toContain('m200\u001b');
    for (const without of [
      await terminal('requests list --no-color'),
      await terminal('--no-color requests list'),
      await terminal('requests list', { env: { NO_COLOR: '1' } }),
      await terminal('requests list', { env: { TERM: 'dumb' } }),
    ]) {
      expect(without.screen).toContain('429');
      expect(without.screen).not.toContain('\u001b[');
    }
  });

  it.each([
    ['keys revoke', 'Revoke key default/asked'],
    ['keys rotate', 'Rotate key default/asked'],
  ])('is asked before %s', async (command, question) => {
    await gateway.createKey({ name: 'asked' });
    const state = () =>
      gateway.database.query("SELECT version, revoked_at FROM gateway_key WHERE name = 'asked'");
    const before = await state();
    for (const text of ['n\n', '\n', '\u0003']) {
      const { code, screen } = await terminal(`${command} default/asked`, { type: { after: '[y/N]', text } });
      expect([code, plain(screen)]).toEqual([1, expect.stringContaining(question)]);
      expect(screen).toContain('error: cancelled, nothing was changed');
    }
    expect(await state()).toEqual(before);
    const { code } = await terminal(`${command} default/asked`, { type: { after: '[y/N]', text: 'y\n' } });
    expect(code).toBe(0);
    expect(await state()).not.toEqual(before);
    await gateway.database.query(
      "UPDATE gateway_key SET name = gen_random_uuid()::text WHERE name = 'asked'",
    );
  });

  it('is asked before a provider is removed, unless --yes is given', async () => {
    for (const name of ['one', 'two'])
      await gateway.admin('POST', '/providers', { name, url: 'https://p.example', secret: null });
    const type = { after: '[y/N]', text: 'no\n' };
    expect((await terminal('providers remove one', { type })).screen).toContain(
      'Remove provider one and its secret?',
    );
    expect((await terminal('providers remove two --yes')).screen).toBe('Removed provider two.\n');
    expect(await gateway.admin('GET', '/providers')).toMatchObject({ data: [{ name: 'one' }] });
  });

  it('does not show a secret that is typed', async () => {
    await gateway.admin('POST', '/providers', { name: 'typed', url: 'https://p.example', secret: null });
    const type = { after: '(not shown): ', text: 'sk-typed-secret\n' };
    const { code, screen } = await terminal('providers update typed --secret', { type });
    expect([code, screen]).toEqual([0, expect.stringContaining('Updated provider typed')]);
    expect(screen).not.toContain('sk-typed');
    expect(await gateway.admin('GET', '/providers/typed')).toMatchObject({ secret_state: 'sealed' });
  });
});

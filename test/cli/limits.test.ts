import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { type OwnedKey, spend } from '../webhooks/alerts.js';
import { Receiver, verified } from '../webhooks/receiver.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

const remote = (line: string, input = '') =>
  runHere(line.split(' '), { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN }, undefined, input);
const json = async <T>(line: string): Promise<T> => {
  const { code, stdout, stderr } = await remote(`${line} --json`);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
};
/** Runs a command that a hint names, as it is printed. */
const hintOf = (stdout: string) => /(?:postern|npx postern) (.+)$/m.exec(stdout)![1]!;

const RATES = { requests_per_minute: 600, tokens_per_minute: 200_000, concurrent_requests: 20 };

describe('limits on the command line', () => {
  it('are set when a key is created, and changed one by one', async () => {
    const options =
      '--rpm 600 --tpm 200000 --concurrency 20 --budget 50/month@80,100 --budget 2000000tokens/day:warn';
    const key = await json<OwnedKey>(`keys create --team default --name ci --models gpt-5* ${options}`);
    const monthly = { usd: '50.00', period: 'month', mode: 'block', alert_at: [80, 100] };
    const daily = { tokens: 2_000_000, period: 'day', mode: 'warn', alert_at: [] };
    const sorted = (shown: { budgets: { period: string }[] }) =>
      [...shown.budgets].sort((a, b) => b.period.localeCompare(a.period));
    expect(key).toMatchObject({ models: ['gpt-5*'], limits: RATES });
    expect(sorted(key as never)).toMatchObject([monthly, daily]);

    const changed = await json<{ budgets: { period: string }[] }>(
      'keys update default/ci --tpm none --budget 75.5/month',
    );
    expect(changed).toMatchObject({ limits: { ...RATES, tokens_per_minute: null } });
    expect(sorted(changed)).toMatchObject([{ ...monthly, usd: '75.50' }, daily]);
    const shown = await remote('keys show default/ci');
    expect(shown.stdout).toMatch(/^requests a minute +600$/m);
    expect(shown.stdout).toMatch(/^budgets +.*75\.50\/month@80,100/m);
    expect(shown.stdout).not.toMatch(/^tokens a minute/m);

    expect(await json('limits set default/ci --rpm none --concurrency none --budget none')).toMatchObject({
      limits: null,
      budgets: [],
    });
  });

  it('are set for a group, all calls, some providers and models, and each session', async () => {
    await remote('teams create grouped');
    await remote('groups create dev --teams grouped');
    await gateway.storeProviders('openai');
    const budget = { usd: '100.00', period: 'day', alert_at: [80, 100], unpriced: 'allow' };
    expect(await json('limits set group dev --budget 100/day@80,100 --count-from now')).toMatchObject({
      name: 'dev',
      budgets: [budget],
    });
    // Another filter is another budget.
    expect(await json('limits set group dev --provider openai --budget 50/day')).toMatchObject({
      budgets: [budget, { usd: '50.00', period: 'day', providers: ['openai'] }],
    });
    expect(await json('limits set group dev --provider openai --budget none')).toMatchObject({
      budgets: [budget],
    });
    const forwarded = 'Calls without a price pass the budgets of group dev and are not in USED.';
    expect((await remote('limits list --scope group')).stdout).toContain(forwarded);
    expect((await remote('limits list --scope team')).stdout).not.toContain('without a price');
    expect(
      await json('limits set installation --provider openai --budget 5000/month --rpm 60'),
    ).toMatchObject({
      limits: null,
      filtered_limits: [{ providers: ['openai'], models: null, requests_per_minute: 60 }],
      budgets: [{ usd: '5000.00', period: 'month', providers: ['openai'] }],
    });
    expect(await json('limits set team grouped --model claude-opus-* --budget 300/week')).toMatchObject({
      budgets: [{ usd: '300.00', models: ['claude-opus-*'], unpriced: 'reject' }],
    });
    await remote('keys create --team grouped --name agent');
    expect(await json('limits set grouped/agent --each-session --budget 5/session')).toMatchObject({
      budgets: [],
      each_session: { budgets: [{ usd: '5.00', period: 'session' }] },
    });
    const { stdout } = await remote('limits show grouped/agent --wide');
    expect(stdout.split('\n').map((line) => line.replace(/ {2,}.*/, ''))).toEqual(
      expect.arrayContaining(['grouped/agent', 'grouped', 'group dev', 'installation']),
    );
    expect((await remote('groups show dev')).stdout).toMatch(/^budgets +100\.00\/day@80,100$/m);
    expect((await remote('keys show grouped/agent')).stdout).toMatch(/^each session +5\.00\/session$/m);
    expect((await remote('teams show grouped')).stdout).toMatch(
      /^budgets +300\.00\/week \(claude-opus-\*\)$/m,
    );
    const listed = await json<{ data: { group: string | null }[] }>('limits list --scope group');
    expect(listed.data).toMatchObject([{ group: 'dev', amount: '100.00' }]);
    expect((await json<{ data: object[] }>('limits list --provider openai')).data).toHaveLength(2);
    // The budgets of a team stay apart by their filter when one of them changes.
    expect(await json('teams update grouped --budget 20/week')).toMatchObject({
      budgets: [{ models: ['claude-opus-*'] }, { usd: '20.00' }],
    });
    for (const [line, message] of [
      ['limits set grouped --budget 5/session', '--each-session and the period session'],
      ['limits set grouped --each-session --budget 5/day', '--each-session and the period session'],
      ['limits set group nobody --rpm 1', 'no group has this name or id'],
      ['limits set group --rpm 1', 'no team is called'],
      ['limits set a b c --rpm 1', 'name one owner'],
      ['limits set installation --provider nobody --rpm 1', 'nobody'],
    ] as const)
      expect(await remote(line)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(message) as string,
      });
    await remote('limits set installation --provider openai --budget none --rpm none');
    expect(await json('limits show installation')).toMatchObject({ data: [] });
  });

  it('are set on a team, and shown for a key with those of its team', async () => {
    const created = await remote('teams create search --budget 500/month@80');
    expect(created.code).toBe(0);
    expect(await json('teams update search --rpm 100')).toMatchObject({
      limits: { requests_per_minute: 100 },
      budgets: [{ usd: '500.00', alert_at: [80] }],
    });
    const key = await json<OwnedKey>('keys create --team search --name batch --budget 10/total');
    await spend(gateway.database, key, '2.5');
    const shown = await remote('limits show search/batch');
    expect(shown.stdout).toMatch(/^OWNER +LIMIT +AMOUNT +USED /);
    expect(shown.stdout).toMatch(/^search\/batch +usd\/total +10\.00 +2\.50 +0\.00 +7\.50 +ok /m);
    expect(shown.stdout).toMatch(/^search +usd\/month +500\.00 +2\.50 /m);
    expect(shown.stdout.split('\n')).toHaveLength(5);
    expect((await json<{ data: object[] }>('limits show search')).data).toHaveLength(2);
    expect((await json<{ data: object[] }>('limits list --key search/batch')).data).toHaveLength(1);
    expect((await json<{ data: object[] }>('limits list --state exhausted')).data).toEqual([]);
  });

  it('count from the start of their period, and the command says what was used before', async () => {
    expect((await remote('teams create late')).code).toBe(0);
    const unused = await remote('limits set late --budget 9tokens/week');
    expect(unused.stdout).toContain('\nThe budget 9tokens/week counts from now.\n');
    const key = await json<OwnedKey>('keys create --team late --name ci');
    await spend(gateway.database, key, '20.17');
    const tokens = await remote('limits set late/ci --budget 9tokens/week');
    expect(tokens.stdout).toContain('/week counts from the start of its week: 16 tokens used before.\n');
    for (const owner of ['late', 'late/ci']) {
      const { stdout } = await remote(`limits set ${owner} --budget 30/month --budget 9tokens/total`);
      expect(stdout).toContain(
        '\nThe budget 30.00/month counts from the start of its month: $20.17 used before.\n',
      );
      expect(stdout).toContain('\nThe budget 9tokens/total counts from now.\n');
      expect((await remote(`limits show ${owner}`)).stdout).toMatch(/usd\/month +30\.00 +20\.17 /);
      // It is no new one.
      expect((await remote(`limits set ${owner} --budget 40/month`)).stdout).not.toContain('counts from');
    }
    for (const command of ['teams update late', 'keys update late/ci']) {
      const { stdout } = await remote(`${command} --budget 70/week --count-from now`);
      expect(stdout).toMatch(/^Updated /);
      expect(stdout).toContain('\nThe budget 70.00/week counts from now.\n');
      expect((await remote(`${command} --budget 80/week`)).stdout).not.toContain('counts from');
    }
    expect((await remote('limits set late --budget 1/day --count-from never')).stderr).toContain(
      '--count-from must be period or now',
    );
  });

  it('are tried on the calls of the last days, and nothing is changed', async () => {
    expect((await remote('teams create tried')).code).toBe(0);
    const key = await json<OwnedKey>('keys create --team tried --name ci');
    for (const cost of ['1', '2', '4']) await spend(gateway.database, key, cost);
    const tried = await remote('limits set tried --budget 3/month --budget 100/week --dry-run');
    expect(tried.stdout).toBe(
      '3/month: would have rejected 1 of the 3 calls of team tried in the last 7 days.\n' +
        '100/week: would have rejected 0 of the 3 calls of team tried in the last 7 days.\n' +
        'Nothing was changed.\n',
    );
    expect(await json('limits set tried/ci --model none-* --budget 1tokens/total --dry-run')).toEqual({
      data: [{ calls: 0, rejected: 0 }],
    });
    const all = await json<{ data: { calls: number }[] }>(
      'limits set installation --budget 1/month --dry-run',
    );
    expect(all.data[0]!.calls).toBeGreaterThanOrEqual(3);
    expect(await json('teams show tried')).toMatchObject({ budgets: [] });
    expect((await remote('limits set tried --rpm 5 --dry-run')).stderr).toContain('--dry-run tries budgets');
  });

  it('are reset, and hint at what to do next with commands that can be pasted', async () => {
    const set = await remote('limits set default --budget 1/total');
    expect(set.stdout).toContain('Set the limits of team default.');
    expect((await remote(hintOf(set.stdout))).stdout).toMatch(/usd\/total/);
    const { data } = await json<{ data: { id: string }[] }>('limits show default');
    const reset = await remote(`limits reset ${data[0]!.id} --reason extended`);
    expect(reset.stdout).toBe('Reset usd/total of default: 1.00 of 1.00 left.\n');
    await gateway.admin('POST', '/teams', { name: 'free' });
    const none = await remote('limits show free');
    expect(none.stdout).toMatch(/^No limits found\.\nSet one: /);
    expect((await remote(hintOf(none.stdout))).code).toBe(0);
  });

  it.each([
    ['keys create --team default --name x --budget 50', /^error: --budget must be an amount and a period/],
    ['keys create --team default --name x --budget 1.5tokens/day', /^error: --budget must be/],
    ['keys create --team default --name x --rpm many', /^error: --rpm must be a whole number, or none/],
    ['limits set default', /^error: nothing to set: give --rpm/],
    ['limits set nobody --rpm 1', /^error: no team is called "nobody"; a key is team\/name, /],
    [
      'limits set default --budget 5/day --budget 6/day',
      /^error: --budget must not be given twice for usd\/day/,
    ],
    ['limits set 01890a5d-ac96-774b-bcce-b302099a8057 --rpm 1', /^error: no team or key has this ID/],
  ])('are not set by %s', async (line, reason) => {
    const { code, stderr } = await remote(line);
    expect([code, stderr]).toEqual([1, expect.stringMatching(reason)]);
  });
});

describe('postern webhooks', () => {
  it('creates, lists, tests and deletes a webhook', async () => {
    const receiver = await new Receiver().listen();
    const created = await remote(`webhooks create ${receiver.url} --events key.expiring,price.missing`);
    const secret = /^ {2}(whsec_\S+)$/m.exec(created.stdout)![1]!;
    const test = hintOf(created.stdout);
    expect((await remote(test)).stdout).toMatch(
      /^ok, status 204, \d+ ms\nOK: the receiver accepted the event\.\n$/,
    );
    expect(verified(receiver.received[0]!, secret)).toMatchObject({ type: 'webhook.test' });
    const listed = await remote('webhooks list');
    expect(listed.stdout).toMatch(/^ID +URL +LAST DELIVERY +AT +WAITING +FORMAT +EVENTS\n/);
    expect(listed.stdout).not.toContain('canary-receiver-token');
    await receiver.close();
    const failed = await remote(test);
    expect([failed.code, failed.stdout, failed.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(/^refused, \d+ ms\nConnection refused: nothing listens/),
    ]);
    const { data } = await json<{ data: { id: string }[] }>('webhooks list');
    expect((await remote(`webhooks delete ${data[0]!.id}`)).stdout).toBe(`Deleted webhook ${data[0]!.id}.\n`);
    expect(await json('webhooks list')).toMatchObject({ data: [] });
  });

  it('reads the URL from standard input, and prints no secret for Slack', async () => {
    const slack = 'https://hooks.slack.com/services/T000/B000/canary';
    const { code, stdout } = await remote(
      'webhooks create --events key.expiring --format slack',
      `${slack}\n`,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Created webhook \S+ \(https:\/\/hooks\.slack\.com\/…\)\.\nTest it: /);
    const rejected = await remote('webhooks create http://169.254.169.254/ --events key.expiring');
    expect([rejected.code, rejected.stderr]).toEqual([
      1,
      expect.stringMatching(/^error: <url> must not point to/),
    ]);
  });

  it('works on the database without a gateway too', async () => {
    const env = { DATABASE_URL: gateway.database.url, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
    const args = ['webhooks', 'create', 'http://127.0.0.1:9/', '--events', 'key.expiring', '--json'];
    const ran = await runHere(args, env);
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    expect(JSON.parse(ran.stdout)).toMatchObject({ secret: expect.stringMatching(/^whsec_/) as string });
  });
});

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'yaml';
import { fileSchema } from '../../src/apply/file-schema.js';
import { UNPRINTABLE } from '../../src/admin/fields.schema.js';
import { EVENT_TYPES } from '../../src/webhooks/event-types.js';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { check } from '../support/property.js';
import { ApplyRun } from './apply-run.js';

const UNCHANGED = { code: 0, stderr: '', stdout: 'No changes.\n' };
/** Text that some reader of YAML takes for something else. */
const MISTAKABLE = [
  ...['yes', 'no', 'on', 'null', '~', 'true', '1e3', '007', '0x1F', '0o17', '1_000', '1:20', '.inf', '.nan'],
  ...[
    '2026-01-01',
    '<<',
    '=',
    '-',
    '?',
    '- a',
    'a: b',
    'a:',
    'a #b',
    '#a',
    '*a',
    '&a',
    '!a',
    '%a',
    '@a',
    '`a',
  ],
  ...['"a"', "'a'", "it's", '{a}', '[a]', 'a, b', 'a\\n', '|', '>', '---', '...', 'é', '日本', '👩🏽', 'Ä=ä'],
];

interface Named {
  id: string;
  name: string;
}

let run: ApplyRun;
beforeEach(async () => {
  run = await ApplyRun.start();
});
afterEach(() => run.stop());

/** Nothing that a reference would need is in the environment. */
async function exported(args: string[] = [], token = ADMIN_TOKEN) {
  const env = { POSTERN_URL: run.postern.url, POSTERN_ADMIN_TOKEN: token };
  return runHere(['export', ...args], env, run.folder);
}

/** Creates an object, unless one of this name is there or the name is one that none may have. */
async function post(list: string, body: object): Promise<Named | null> {
  try {
    return await run.postern.admin<Named>('POST', `/${list}`, body);
  } catch (error) {
    if (!/^Error: \S+ \S+ 4(09|00) .*(conflict|name)/s.test(String(error))) throw error;
    return null;
  }
}

const printable = (max: number) =>
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: max })
    .filter((text) => text.trim() === text && text !== '' && !UNPRINTABLE.test(text));
const name = fc.oneof(fc.constantFrom(...MISTAKABLE), printable(40));
const note = fc
  .array(fc.oneof(name, fc.constantFrom('', ' two', '\ttab', 'end '), printable(80)), { minLength: 1 })
  .map((lines) => lines.join('\n'))
  .filter((text) => text.trim() !== '' && [...text].length <= 1_000);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const usd = fc.constantFrom('0', '0.5', '500.00', '1000000000', '0.000000001', '007');
const amount = fc.constantFrom('0', '0.20', '2.5', '123456.654321', '007');
const count = fc.integer({ min: 0, max: 1_000_000_000 });
const percents = fc.uniqueArray(fc.integer({ min: 1, max: 100 }), { maxLength: 3 });
const budgets = fc.uniqueArray(
  fc
    .record({
      period: fc.constantFrom('day', 'week', 'month', 'total'),
      mode: fc.constantFrom('block', 'warn'),
      alert_at: percents,
      unpriced: fc.constantFrom('reject', 'allow'),
      reservation: fc.constantFrom('typical', 'worst'),
    })
    .chain((rest) =>
      fc.oneof(
        usd.map((usd) => ({ usd, ...rest })),
        count.map((tokens) => ({ tokens, ...rest })),
      ),
    ),
  { maxLength: 3, selector: ({ period }) => period },
);
const rates = {
  requests_per_minute: maybe(count),
  tokens_per_minute: maybe(count),
  concurrent_requests: maybe(count),
};
const shared = {
  models: maybe(fc.array(fc.constantFrom('gpt-5*', '*', 'a,b', '{x}', '#m', 'null', '1.0'))),
  stream_usage: fc.constantFrom('as_sent', 'require', 'ask'),
  limits: maybe(fc.record(rates)),
  budgets,
  each_end_user: maybe(fc.record({ ...rates, budgets })),
  owner: maybe(name),
  contact: maybe(name),
  cost_center: maybe(name),
  note: maybe(note),
};
const calls = {
  providers: maybe(fc.constantFrom(['one'], ['one', 'two'])),
  models: maybe(fc.constantFrom(['gpt-5*'], ['#m', 'null', '{x}'])),
};
/** Of a group or the installation. */
const sharedLimits = {
  limits: maybe(fc.record(rates)),
  budgets: fc
    .tuple(budgets, fc.record(calls))
    .map(([list, filter]) => list.map((budget) => ({ ...budget, ...filter }))),
  each_session: maybe(
    fc.record({
      ...rates,
      budgets: fc.uniqueArray(
        fc.record({ usd, period: fc.constant('session'), mode: fc.constantFrom('block', 'warn') }),
        { maxLength: 1 },
      ),
    }),
  ),
};
const group = fc.record({ name, note: maybe(note), ...sharedLimits });
const team = fc.record({
  name,
  /** Index of a group; beyond the last one: none. */
  group: fc.nat({ max: 3 }),
  ...shared,
  self_service: maybe(
    fc.record({
      keys_per_user: fc.integer({ min: 1, max: 100 }),
      max_days: fc.integer({ min: 1, max: 3650 }),
      budget_usd_per_month: maybe(fc.constantFrom('50', '0.5', '1.50')),
      providers: maybe(fc.constant(['one', 'main'])),
      sign_in_within_days: maybe(fc.integer({ min: 1, max: 90 })),
    }),
  ),
  sign_in: maybe(
    fc.record({
      budget_usd_per_month: maybe(fc.constantFrom('50', '0.5', '1.50')),
      providers: maybe(fc.constant(['one', 'main'])),
      endpoints: fc.constantFrom('inference', 'all'),
      token_minutes: fc.integer({ min: 5, max: 720 }),
      days: fc.integer({ min: 1, max: 90 }),
    }),
  ),
  claude_code: maybe(
    fc.constantFrom(
      {},
      { permissions: {} },
      { availableModels: [], enforceAvailableModels: false },
      {
        model: 'sonnet',
        permissions: { ask: ['Bash(git push:*)'], disableBypassPermissionsMode: 'disable' },
      },
    ),
  ),
});
const key = fc.record({
  name,
  ...shared,
  expires_at: maybe(fc.constantFrom('2030-01-31T12:00:00Z', '2031-02-28T23:59:59.999+02:00')),
  providers: maybe(fc.constantFrom(['main'], ['one', 'two'])),
  endpoints: fc.constantFrom('inference', 'all'),
  idempotency: fc.constantFrom('forward', 'replay'),
  websockets: fc.boolean(),
  on_disconnect: maybe(fc.constantFrom('cancel', 'finish')),
  cache: maybe(
    fc.record({ ttl_seconds: fc.integer({ min: 1, max: 9 }), shared: fc.constantFrom('key', 'team') }),
  ),
});
const price = fc.record({
  catalog: fc.constantFrom('one', 'yes', '007', 'null'),
  model: name.filter((text) => !text.includes('*')).chain((text) => fc.constantFrom(text, `${text}*`)),
  effective_from: fc.constantFrom('1970-01-01T00:00:00Z', '2026-03-29T00:30:00+01:00'),
  input: amount,
  cached_input: maybe(amount),
  output: maybe(amount),
  extra: maybe(fc.record({ web_searches: amount }, { requiredKeys: [] })),
  tiers: maybe(
    fc.array(
      fc.record(
        {
          above: count,
          between: fc.constant(['22:00:00', '06:00:00']),
          output: maybe(amount),
          service_tier: fc.constant('batch'),
        },
        { requiredKeys: ['above', 'output'] },
      ),
      { minLength: 1, maxLength: 3 },
    ),
  ),
  // The one text that may have any character.
  note: maybe(
    fc.oneof(
      note,
      fc.constantFrom('a\r\nb\r', '\u001b[31m', '\u2028x\u200b', '\ufeff', 'a\u0085b', '\u{e0001}', ' '),
    ),
  ),
});
const route = fc.record({
  name: fc.constantFrom('main', '1e3', '007', 'yes', 'null', '0x1f'),
  targets: fc.array(
    fc.record({
      provider: fc.constantFrom('one', 'two'),
      models: maybe(fc.dictionary(name, name, { minKeys: 1, maxKeys: 4, noNullPrototype: true })),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  strategy: fc.constantFrom('order', 'spread'),
  retry_on: fc.shuffledSubarray(['connect', 'refused', 'failed']),
  max_attempts: fc.integer({ min: 1, max: 4 }),
  dialect: fc.constantFrom('any', 'openai', 'anthropic'),
  default: fc.boolean(),
});
const webhook = fc.record({
  url: fc.constantFrom(
    'https://hooks.slack.com/services/canary',
    'https://a.example.com/',
    'http://127.0.0.1:9/canary',
  ),
  format: fc.constantFrom('standard', 'slack'),
  events: fc.shuffledSubarray([...EVENT_TYPES], { minLength: 1 }),
});
const configuration = fc.record({
  installation: fc.record(sharedLimits),
  groups: fc.array(group, { maxLength: 3 }),
  teams: fc.array(team, { minLength: 1, maxLength: 5 }),
  keys: fc.array(key, { maxLength: 6 }),
  prices: fc.array(price, { maxLength: 5 }),
  routes: fc.array(route, { maxLength: 2 }),
  webhooks: fc.array(webhook, { maxLength: 2 }),
  disabled: fc.infiniteStream(fc.boolean()),
});

async function createProviders() {
  const provider = { url: 'https://api.openai.com', secret: 'sk-canary-0123456789' };
  await post('providers', { name: 'one', ...provider, default: true });
  await post('providers', {
    name: 'two',
    ...provider,
    catalog: null,
    auth: 'x-api-key',
    enabled: false,
    on_disconnect: 'finish',
  });
  await post('routes', { name: 'main', targets: [{ provider: 'one' }] });
}

describe('postern export', () => {
  it('writes a file that changes nothing, for any configuration, and the same bytes every time', async () => {
    await createProviders();
    await check(
      fc.asyncProperty(
        configuration,
        async ({
          installation,
          groups: groupsOf,
          teams: teamsOf,
          keys,
          prices,
          routes,
          webhooks,
          disabled,
        }) => {
          const make = async (list: string, bodies: object[]) => {
            const made: Named[] = [];
            for (const body of bodies) {
              const one = await post(list, body);
              if (one !== null) made.push(one);
            }
            return made;
          };
          await run.postern.admin('PATCH', '/limits/installation', installation);
          await make('routes', routes);
          const groups = await make('groups', groupsOf);
          const teams = await make(
            'teams',
            teamsOf.map((each) => ({ ...each, group: groups[each.group]?.id ?? null })),
          );
          const all = teams.flatMap(({ id }) => keys.map((each) => ({ team: id, ...each })));
          const made = await make('keys', all.slice(0, 8));
          await make('prices', prices);
          await make('webhooks', webhooks);
          for (const [list, objects] of Object.entries({ teams, keys: made }))
            for (const { id } of objects)
              if (disabled.next().value)
                await run.postern.admin('PATCH', `/${list}/${id}`, { disabled: true });

          const { stdout: text, stderr } = await exported();
          expect(stderr).toBe('');
          expect(text).not.toContain('canary');
          expect(await run.apply(text, ['--dry-run', '--exit-code'])).toEqual(UNCHANGED);
          expect(await run.apply(text)).toEqual(UNCHANGED);
          expect((await exported()).stdout).toBe(text);
          // Every text is what it was, also for a reader of YAML 1.1.
          const { stdout: json } = await exported(['--json']);
          for (const version of ['1.1', '1.2'] as const)
            expect(parse(text, { version })).toEqual(JSON.parse(json));
        },
      ),
      { numRuns: 6, endOnFailure: true },
    );
  }, 600_000);

  it('has every member that apply knows', async () => {
    const limitsOfAll = {
      limits: { requests_per_minute: 1 },
      budgets: [{ usd: '1', period: 'day' }],
      filtered_limits: [{ models: ['b*'], requests_per_minute: 2 }],
      each_end_user: { concurrent_requests: 1 },
      each_session: { budgets: [{ usd: '5', period: 'session' }] },
    };
    const all = {
      models: ['a'],
      stream_usage: 'ask',
      ...limitsOfAll,
      ...{ owner: 'ann', contact: 'jane', cost_center: '4711', note: 'one\ntwo' },
      disabled: true,
    };
    const POLICY = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
    const [env, secret] = [{ TOKENS: 'oauth-canary', ROWS: 'canary:0123456789', POLICY }, { env: 'TOKENS' }];
    const document = {
      providers: [
        {
          ...{ name: 'entra', url: 'https://x.openai.azure.com', auth: 'oauth2', secret },
          auth_settings: { token_url: 'https://login.example.com/token', client_id: 'postern', scope: 'a b' },
          ...{ default: true, enabled: false, catalog: 'mine' },
        },
        {
          ...{ name: 'keyless-claude', url: 'https://api.anthropic.com', auth: 'anthropic-federation' },
          auth_settings: {
            ...{ identity_token: 'claude', federation_rule_id: 'fdrl_1', organization_id: 'org-1' },
            ...{ service_account_id: 'svac_1', workspace_id: 'wrkspc_1' },
          },
          secret: null,
        },
        {
          ...{ name: 'keyless-machine', url: 'https://aiplatform.googleapis.com', auth: 'google' },
          ...{ auth_settings: { source: 'metadata' }, secret: null },
        },
        { name: 'local', url: 'http://127.0.0.1:9', secret: null },
        { name: 'of-search', url: 'http://127.0.0.1:9', secret: null, team: 'search' },
      ],
      routes: [
        {
          ...{ name: 'main', targets: [{ provider: 'local', models: { a: 'b' } }], strategy: 'spread' },
          ...{ retry_on: [], max_attempts: 3, dialect: 'openai', default: true },
        },
      ],
      installation: { ...limitsOfAll, budgets: [{ usd: '9', period: 'day', unpriced: 'reject' }] },
      groups: [{ name: 'dev', note: 'shared', ...limitsOfAll }],
      teams: [
        {
          ...{ name: 'search', group: 'dev', ...all, self_service: { keys_per_user: 1, max_days: 2 } },
          ...{ providers: ['main', 'of-search'], default_provider: 'of-search' },
          ...{ sign_in: { days: 7 }, claude_code: { permissions: { deny: ['WebFetch'] } } },
        },
      ],
      prices: [
        {
          ...{
            catalog: 'mine',
            model: 'a*',
            effective_from: '2026-01-01T00:00:00Z',
            note: ' a \n b\r\n\n ',
            per_call: '1',
          },
          ...{ input: '1', cached_input: '1', cache_write: '1', cache_write_1h: '1', output: '1' },
          ...{ extra: { web_searches: '1' }, tiers: [{ above: 1, input: '2' }] },
        },
      ],
      keys: [
        {
          ...{
            team: 'search',
            name: 'ci',
            ...all,
            expires_at: '2030-01-31T12:00:00Z',
            providers: ['main'],
            on_disconnect: 'finish',
          },
          ...{
            endpoints: 'all',
            idempotency: 'replay',
            websockets: true,
            cache: { ttl_seconds: 1, shared: 'team' },
          },
        },
        { team: 'search', name: 'tokens only', secret: false },
      ],
      trusts: [
        {
          ...{
            name: 'job',
            key: 'search/ci',
            preset: 'github',
            issuer: 'https://git.example.com/_services/token',
          },
          ...{ audience: 'gateway', jwks: { keys: [{ kty: 'RSA', kid: 'one', n: 'AQAB', e: 'AQAB' }] } },
          ...{
            claims: { repository_id: ['1'], '/nested/claim': [true, 7] },
            any_ref: true,
            cidrs: ['10.0.0.0/8'],
          },
          ...{ token_minutes: 5, longest_jwt_minutes: 10, max_live: 7, enabled: false },
        },
      ],
      webhooks: [{ url: 'https://alerts.example.com/canary', format: 'slack', events: ['key.expiring'] }],
      policies: [
        {
          ...{ name: 'dlp', url: 'https://filter.example.com/canary', secret: { env: 'POLICY' } },
          applies_to: { teams: ['search'], keys: ['search/ci'], models: ['gpt-5*'] },
          ...{ send: 'body', timeout_ms: 500, on_failure: 'allow', cache_seconds: 60, order: 2 },
          enabled: false,
        },
        { name: 'plain', url: 'https://filter.example.com/', secret: { env: 'POLICY' } },
      ],
      sinks: [
        {
          ...{ name: 'rows', kind: 'clickhouse', url: 'https://ch.example.com:8443', target: 'a.b' },
          ...{ secret: { env: 'ROWS' }, enabled: false },
        },
        { name: 'hidden', kind: 'http', url: 'https://rows.example.com/?k=canary' },
      ],
    };
    const applied = await run.apply(JSON.stringify(document), ['--secrets-out', 'new.ndjson'], env);
    expect(applied).toMatchObject({ code: 0, stderr: '' });
    const { stdout: text } = await exported();
    expect(text).not.toContain('canary');
    expect(await run.apply(text)).toEqual(UNCHANGED);

    const written = parse(text) as Record<string, object[]>;
    const { properties, $defs } = fileSchema() as {
      properties: Record<string, { items?: { $ref: string }; $ref: string }>;
      $defs: Record<string, { properties: Record<string, object> }>;
    };
    for (const [list, schema] of Object.entries(properties)) {
      // What stands alone is no list.
      const each = schema.items ?? schema;
      const items = each.$ref === undefined ? (each as never) : $defs[each.$ref.split('/').at(-1)!]!;
      const names = new Set([written[list]!].flat().flatMap((item) => Object.keys(item)));
      // Where a sink begins is for a new one.
      const known = Object.keys(items.properties).filter((member) => member !== 'from' || list !== 'sinks');
      expect([list, [...names].sort()]).toEqual([list, known.sort()]);
    }
    expect(written.providers).toMatchObject([
      { name: 'entra', auth_settings: { client_id: 'postern' }, secret: { stored: true } },
      { name: 'keyless-claude', auth_settings: { federation_rule_id: 'fdrl_1' }, secret: null },
      { name: 'keyless-machine', auth_settings: { source: 'metadata' }, secret: null },
      { name: 'local', secret: null },
      { name: 'of-search', team: 'search', secret: null },
    ]);
    expect(text).toMatch(/^ {2}- url: \{ stored: [0-9a-f-]{36} \} # https:\/\/alerts\.example\.com\/…$/m);
    expect(text).toMatch(/^ {4}url: \{ stored: true \} # https:\/\/rows\.example\.com\/…$/m);
    expect(text).toMatch(
      /^# Written by postern export, Postern \d+\.\d+\.\d+\S*\. .*\n# Times are in UTC\. .* begin in UTC\.\n/,
    );
  });

  it('shows drift by the exit code, without any secret', async () => {
    await createProviders();
    const text = (await exported()).stdout;
    await run.postern.admin('PATCH', '/routes/main', { max_attempts: 3 });
    await run.postern.admin('POST', '/teams', { name: 'beside' });
    const drift = await run.apply(text, ['--dry-run', '--exit-code']);
    expect([drift.code, drift.stdout]).toEqual([
      2,
      '~ route main\n    max_attempts: 3 → 2\nPlan: 1 change. Nothing was changed.\n',
    ]);
    const pruned = await run.apply(text, ['--dry-run', '--prune', '--exit-code']);
    expect([pruned.code, pruned.stdout]).toEqual([
      2,
      expect.stringContaining('\n- team beside (disabled)\n'),
    ]);
    expect((await run.apply(text)).stdout).toContain('Applied 1 change.');
    expect(await run.apply(text, ['--dry-run', '--exit-code'])).toEqual(UNCHANGED);
    // The stored secret is still there, and is not sent to another host.
    const [row] = await run.postern.database.query<{ n: number }>(
      'SELECT count(sealed_secret)::int AS n FROM provider',
    );
    expect(row).toEqual({ n: 2 });
    const moved = await run.apply(text.replace('api.openai.com', 'api.elsewhere.example'));
    expect(moved.stderr).toMatch(/providers\[0\]\.secret: must be sent again with a URL on another host/);
  });

  it('shows drift of groups and of their teams, and prunes groups', async () => {
    await createProviders();
    await post('groups', { name: 'dev', note: 'Shares a budget.', teams: ['default'] });
    const text = (await exported()).stdout;
    expect(text).toMatch(/\ngroups:\n {2}- name: dev\n {4}note: Shares a budget\.\n\nteams:\n/);
    expect(text).toMatch(/ {2}- name: default\n {4}group: dev\n/);
    await post('groups', { name: 'ops', teams: ['default'] });
    await post('teams', { name: 'beside', group: 'ops' });
    const drift = await run.apply(text, ['--dry-run', '--exit-code']);
    expect([drift.code, drift.stdout]).toEqual([
      2,
      '~ team default\n    group: "ops" → "dev"\nPlan: 1 change. Nothing was changed.\n',
    ]);
    const pruned = await run.apply(text, ['--prune', '--yes']);
    expect(pruned.stdout).toContain('- team beside (disabled)\n- group ops\nApplied 3 changes.');
    expect(await run.postern.admin('GET', '/teams/beside')).toMatchObject({ disabled: true, group: null });
    expect(await run.apply(text, ['--prune', '--dry-run', '--exit-code'])).toEqual(UNCHANGED);
    // Teams that no list names keep their group, which is then not removed.
    const kept = await run.apply('groups: [{ name: other }]', ['--prune', '--yes']);
    expect([kept.code, kept.stderr]).toEqual([
      1,
      expect.stringContaining('groups.teams: this group has the teams default; take them out of it first'),
    ]);
    const unknown = await run.apply('teams: [{ name: default, group: nobody }]');
    expect(unknown.stderr).toBe(
      'error: postern.yaml:1:26: teams[0].group: no group has this name or id; list the groups, or create it first\n',
    );
  });

  it('names the remedy where nothing is stored', async () => {
    await createProviders();
    await post('providers', { name: 'open', url: 'http://127.0.0.1:9', secret: null });
    await post('webhooks', { url: 'https://a.example.com/', events: ['key.expiring'] });
    const text = `
providers:
  - { name: new, url: https://new.example.com, secret: { stored: true } }
  - { name: open, url: http://127.0.0.1:9, secret: { stored: true } }
webhooks:
  - { url: { stored: 01890a5d-ac96-774b-bcce-b302099a8057 }, events: [key.expiring] }
sinks:
  - { name: rows, kind: http, url: { stored: true } }
`;
    const { code, stderr } = await run.apply(text);
    const give = 'so give the secret itself: in a file as { env: NAME } or { file: PATH }';
    expect([code, stderr.split('\n')]).toEqual([
      1,
      [
        `error: postern.yaml:3:48: providers[0].secret: nothing is stored for it here, ${give}`,
        `error: postern.yaml:4:44: providers[1].secret: nothing is stored for it here, ${give}`,
        expect.stringMatching(
          /^error: postern\.yaml:6:7: webhooks\[0\]\.url: no webhook with this ID is stored here/,
        ),
        `error: postern.yaml:8:31: sinks[0].url: nothing is stored for it here, ${give}`,
        '',
      ],
    ]);
    const odd = await run.apply(
      'providers: [{ name: one, url: https://api.openai.com, secret: { stored: yes } }]\n' +
        'webhooks: [{ url: { stored: true }, events: [key.expiring] }]\n',
    );
    expect(odd.stderr).toContain(
      'providers[0].secret: must be text, or {"stored": true} to keep what is stored',
    );
    expect(odd.stderr).toContain('webhooks[0].url: must be text, or {"stored": "<ID of the webhook>"}');
    expect(await run.plan('teams: [{ name: default }]')).toEqual([]);
  });

  it('leaves out revoked keys and those of members; --team writes one team, also for its lead', async () => {
    await post('teams', { name: 'search', self_service: { keys_per_user: 1, max_days: 9 } });
    await post('teams', { name: 'ads' });
    const make = (team: string, key: string) => post('keys', { team, name: key });
    await make('search', 'kept');
    const revoked = await make('search', 'revoked');
    await make('search', 'own');
    await make('ads', 'other');
    await run.postern.admin('POST', `/keys/${revoked!.id}/revoke`);
    await run.postern.database.query(`UPDATE gateway_key SET owner = 'sso:jane' WHERE name = 'own'`);
    const names = (text: string) => (parse(text) as { keys: Named[] }).keys.map(({ name }) => name);
    expect(names((await exported()).stdout)).toEqual(['other', 'first', 'kept']);

    const { token } = await run.postern.admin<{ token: string }>('POST', '/tokens', {
      ...{ name: 'lead', role: 'lead', teams: ['search'] },
    });
    const part = await exported(['--team', 'search'], token);
    expect([part.code, part.stderr]).toEqual([0, '']);
    expect(names(part.stdout)).toEqual(['kept']);
    expect(await run.apply(part.stdout)).toEqual(UNCHANGED);
    expect(await exported(['--team', 'ads'], token)).toMatchObject({ code: 1, stdout: '' });
    expect(await exported([], token)).toMatchObject({ code: 1, stdout: '' });
  });

  it('replaces the file of --output, and leaves it as it is if anything fails', async () => {
    await run.write('out.yaml', 'before');
    const failed = await exported(['--output', 'out.yaml', '--team', 'nobody']);
    expect([failed.code, await run.read('out.yaml')]).toEqual([1, 'before']);
    const { code, stdout, stderr } = await exported(['--output', 'out.yaml']);
    expect([code, stdout, stderr]).toEqual([0, '', 'Wrote 1 team, 1 key to out.yaml.\n']);
    expect(await readFile(join(run.folder, 'out.yaml'), 'utf8')).toBe((await exported()).stdout);
    expect((await exported(['--output', 'no/out.yaml'])).stderr).toMatch(
      /no\/out\.yaml cannot be written \(ENOENT\)/,
    );
  });
});

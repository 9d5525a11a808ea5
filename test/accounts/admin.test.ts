import { generateKeyPairSync } from 'node:crypto';
import { runHere } from '../cli/run-here.js';
import { namedProvider, outcomeOf } from '../providers/stored.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import type { RawProvider } from '../support/raw-provider.js';

/* How providers of teams are managed: by the command line, in a file, and by the leads of a team. */

interface Made {
  name: string;
  team: string | null;
  url: string;
  default: boolean;
  version: number;
}
interface Team {
  providers: string[] | null;
  default_provider: string | null;
}

let provider: RawProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await namedProvider('account');
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const cli = (args: string[], input = '', token = ADMIN_TOKEN) =>
  runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: token }, undefined, input);
const providerOf = (name: string) => gateway.admin<Made>('GET', `/providers/${name}`);
const teamOf = (name: string) => gateway.admin<Team>('GET', `/teams/${name}`);
async function status(token: string, method: string, path: string, body?: object) {
  const response = await fetch(`${gateway.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

describe('postern providers add --team', () => {
  const SECRET = 'sk-proj-0123456789abcdef';

  it('makes a provider of the team, named after it, and its default', async () => {
    await gateway.admin('POST', '/teams', { name: 'Web Search' });
    const added = await cli(['providers', 'add', 'openai', '--team', 'Web Search'], SECRET);
    expect(added).toMatchObject({ code: 0 });
    expect(added.stdout).toContain(
      'Added provider openai-web-search (https://api.openai.com) of team Web Search.',
    );
    expect(added.stdout + added.stderr).toContain('Send calls to /v1/… or /p/openai-web-search/…');
    expect(added.stdout + added.stderr).not.toContain(SECRET);
    expect(await providerOf('openai-web-search')).toMatchObject({ team: 'Web Search', default: false });
    expect(await teamOf('Web%20Search')).toMatchObject({
      default_provider: 'openai-web-search',
      providers: null,
    });
    expect((await cli(['providers', 'list'])).stdout).toMatch(/^openai-web-search .* Web Search /m);
    expect((await cli(['teams', 'show', 'Web Search'])).stdout).toMatch(
      /^default provider +openai-web-search$/m,
    );
  });

  it('keeps the default that the team has, and adds the provider to its list', async () => {
    await cli(['teams', 'update', 'Web Search', '--providers', 'openai-web-search,default']);
    const args = ['providers', 'add', 'mine', '--preset', 'anthropic', '--team', 'Web Search'];
    expect(await cli(args, SECRET)).toMatchObject({ code: 0 });
    expect(await teamOf('Web%20Search')).toEqual(
      expect.objectContaining({
        default_provider: 'openai-web-search',
        providers: ['openai-web-search', 'default', 'mine'],
      }),
    );
    expect(
      await cli(['providers', 'add', 'groq', '--team', 'Web Search', '--default'], SECRET),
    ).toMatchObject({
      code: 0,
    });
    expect(await teamOf('Web%20Search')).toMatchObject({ default_provider: 'groq-web-search' });
  });

  it('asks for no secret if the team is unknown', async () => {
    const failed = await cli(['providers', 'add', 'openai', '--team', 'nobody'], SECRET);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('no team has this name or id')]);
  });

  it('moves one to another team or to all', async () => {
    await gateway.admin('POST', '/teams', { name: 'ads' });
    expect(await cli(['providers', 'update', 'mine', '--team', 'ads'])).toMatchObject({ code: 0 });
    expect(await providerOf('mine')).toMatchObject({ team: 'ads' });
    expect((await cli(['providers', 'show', 'mine'])).stdout).toMatch(/^team +ads$/m);
    expect(await cli(['providers', 'update', 'mine', '--team', 'none'])).toMatchObject({ code: 0 });
    expect(await providerOf('mine')).toMatchObject({ team: null });
  });

  it('is audited with the team before and after', async () => {
    const { data } = await gateway.admin<{ data: { before: object; after: object }[] }>(
      'GET',
      '/audit?subject_type=provider&subject_name=mine',
    );
    expect(data.slice(0, 2).map(({ before, after }) => [before, after])).toEqual([
      [{ team: 'ads' }, { team: null }],
      [{ team: 'Web Search' }, { team: 'ads' }],
    ]);
  });
});

describe('a default of a team', () => {
  it('goes before that of PROVIDER_URL, for this team alone, unless its key may use one provider only', async () => {
    const own = await namedProvider('own');
    const body = { name: 'own', url: own.url, secret: null };
    await gateway.admin('POST', '/teams', { name: 'maps' });
    await gateway.admin('POST', '/providers', { ...body, team: 'maps' });
    const key = await gateway.createKey({ team: 'maps', name: 'any' });
    const narrow = await gateway.createKey({ team: 'maps', name: 'narrow', providers: ['default'] });
    expect(await outcomeOf(gateway, '/v1/models', key)).toBe('account');
    await gateway.admin('PATCH', '/teams/maps', { default_provider: 'own' });
    await eventually(async () => (await outcomeOf(gateway, '/v1/models', key)) === 'own');
    const outcomes = [key, narrow, gateway.key].map((one) => outcomeOf(gateway, '/v1/models', one));
    expect(await Promise.all(outcomes)).toEqual(['own', 'account', 'account']);
    await own.stop();
  });

  it('must be among the providers that the team may use', async () => {
    const rejected = await status(ADMIN_TOKEN, 'PATCH', '/teams/maps', { providers: ['default'] });
    expect([rejected.status, rejected.text]).toEqual([400, expect.stringContaining('default_provider')]);
    await gateway.admin('PATCH', '/teams/maps', { providers: ['own', 'default'] });
    const order = { team: 'maps', name: 'beyond', providers: ['groq-web-search'] };
    expect((await status(ADMIN_TOKEN, 'POST', '/keys', order)).status).toBe(400);
  });
});

describe('a lead', () => {
  let lena: string;
  beforeAll(async () => {
    const { url } = provider;
    await gateway.admin('POST', '/teams', { name: 'led' });
    const led = { name: 'of-led', url, secret: 'sk-before-0123456789', team: 'led' };
    await gateway.admin('POST', '/providers', led);
    await gateway.admin('POST', '/providers', { name: 'of-all', url, secret: 'sk-of-all-0123456789' });
    const token = { name: 'lena', role: 'lead', teams: ['led'] };
    lena = (await gateway.admin<{ token: string }>('POST', '/tokens', token)).token;
  });

  it('sees the providers of the team, and no other', async () => {
    const { text } = await status(lena, 'GET', '/providers');
    expect((JSON.parse(text) as { data: Made[] }).data.map(({ name }) => name)).toEqual(['of-led']);
    for (const name of ['of-all', 'default', 'groq-web-search'])
      expect((await status(lena, 'GET', `/providers/${name}`)).status).toBe(404);
  });

  it('replaces the secret, which calls are sent with at once', async () => {
    const key = await gateway.createKey({ team: 'led', name: 'calls' });
    const replaced = await cli(['providers', 'update', 'of-led', '--secret'], 'sk-after-0123456789', lena);
    expect(replaced).toMatchObject({ code: 0 });
    expect(await outcomeOf(gateway, '/p/of-led/v1/models', key)).toBe('account');
    expect(provider.requests.at(-1)!.headers).toContainEqual(['Authorization', 'Bearer sk-after-0123456789']);
    const { data } = await gateway.admin<{ data: object[] }>(
      'GET',
      '/audit?subject_type=provider&subject_name=of-led',
    );
    expect(data[0]).toMatchObject({ actor: 'token:lena', after: { secret: 'changed' } });
  });

  it.each<[string, object]>([
    ['url', { url: 'https://attacker.example', secret: 'sk-attacker-0123456789' }],
    ['team', { team: null }],
    ['enabled', { enabled: false }],
    ['auth', { auth: 'x-api-key' }],
    ['default', { default: true }],
    ['catalog', { catalog: null }],
    ['auth_settings', { auth_settings: {} }],
    ['secret', { secret: null }],
  ])('may not change anything else: %s', async (field, change) => {
    const before = await providerOf('of-led');
    const { status: code, text } = await status(lena, 'PATCH', '/providers/of-led', change);
    expect([code, text]).toEqual([403, expect.stringContaining(`"field":"${field}"`)]);
    expect(await providerOf('of-led')).toEqual(before);
  });

  it('may change no provider of another team or of all, nor add, remove or test one', async () => {
    const secret = { secret: 'sk-attacker-0123456789' };
    expect((await status(lena, 'PATCH', '/providers/of-all', secret)).status).toBe(404);
    expect((await status(lena, 'PATCH', '/providers/groq-web-search', secret)).status).toBe(404);
    const added = { name: 'new', url: provider.url, team: 'led', ...secret };
    expect((await status(lena, 'POST', '/providers', added)).status).toBe(403);
    expect((await status(lena, 'DELETE', '/providers/of-led')).status).toBe(403);
    expect((await status(lena, 'POST', '/providers/of-led/test', {})).status).toBe(403);
    expect((await status(lena, 'PATCH', '/teams/led', { default_provider: 'of-led' })).status).toBe(403);
    expect((await status(lena, 'PATCH', '/teams/led', { providers: null })).status).toBe(403);
  });

  it('cannot have token requests sent elsewhere by the key file of Google', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const file = (token_uri: string) =>
      JSON.stringify({
        type: 'service_account',
        client_email: 'a@b.iam.gserviceaccount.com',
        private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
        token_uri,
      });
    const [here, elsewhere] = ['https://oauth2.googleapis.com/token', 'https://attacker.example/token'];
    const vertex = {
      name: 'vertex-led',
      url: 'https://aiplatform.googleapis.com',
      auth: 'google',
      team: 'led',
    };
    await gateway.admin('POST', '/providers', { ...vertex, secret: file(here) });
    const path = '/providers/vertex-led';
    expect((await status(lena, 'PATCH', path, { secret: file(elsewhere) })).status).toBe(403);
    expect((await status(lena, 'PATCH', path, { secret: file(here) })).status).toBe(200);
  });

  it('gives keys of the team everything at its own providers, and not at those of all', async () => {
    const order = (name: string, endpoints: string) => ({ team: 'led', name, endpoints });
    expect((await status(lena, 'POST', '/keys', order('own', 'own'))).status).toBe(201);
    expect((await status(lena, 'POST', '/keys', order('all', 'all'))).status).toBe(403);
  });
});

describe('a key that a member has made', () => {
  it('stays within the providers of the team, also if these change', async () => {
    const self_service = { keys_per_user: 3, max_days: 1 };
    await gateway.admin('POST', '/teams', { name: 'members', self_service, providers: ['default'] });
    const body = { name: 'mia', role: 'team', teams: ['members'] };
    const { token } = await gateway.admin<{ token: string }>('POST', '/tokens', body);
    const made = await status(token, 'POST', '/keys', { team: 'members', name: 'mine' });
    const { key } = JSON.parse(made.text) as { key: string };
    const outcomes = async () => [
      await outcomeOf(gateway, '/v1/models', key),
      await outcomeOf(gateway, '/p/of-all/v1/models', key),
    ];
    const forbidden = '403 provider_not_allowed';
    expect(await outcomes()).toEqual(['account', forbidden]);
    await gateway.admin('PATCH', '/teams/members', { providers: ['of-all'] });
    await eventually(async () => (await outcomes())[1] === 'account');
    expect(await outcomeOf(gateway, '/p/default/v1/models', key)).toBe(forbidden);
    const shown = await fetch(`${gateway.url}/self/v1/key`, { headers: { authorization: `Bearer ${key}` } });
    expect(await shown.json()).toMatchObject({ providers: ['of-all'] });
    await gateway.admin('PATCH', '/teams/members', {
      self_service: { ...self_service, providers: ['of-all'] },
    });
    await gateway.admin('PATCH', '/teams/members', { providers: ['default'] });
    await eventually(async () => (await outcomes())[1] === forbidden);
    expect(await outcomes()).toEqual([forbidden, forbidden]);
  });
});

describe('endpoints: own', () => {
  it('are inference endpoints alone where the provider is of all teams', async () => {
    const key = await gateway.createKey({ team: 'led', name: 'own-keys', endpoints: 'own' });
    const outcomes = ['/p/of-led/v1/files', '/p/of-all/v1/files', '/v1/files', '/p/of-all/v1/models'].map(
      (path) => outcomeOf(gateway, path, key),
    );
    const forbidden = '403 endpoint_not_allowed';
    expect(await Promise.all(outcomes)).toEqual(['account', forbidden, forbidden, 'account']);
  });

  it('are those of the present target, in a route of both', async () => {
    const key = await gateway.createKey({ team: 'led', name: 'routed', endpoints: 'own' });
    const targets = [{ provider: 'of-all' }, { provider: 'of-led' }];
    await gateway.admin('POST', '/routes', { name: 'mixed', targets });
    expect(await outcomeOf(gateway, '/p/mixed/v1/files', key)).toBe('account');
    expect(provider.requests.at(-1)!.headers).toContainEqual(['Authorization', 'Bearer sk-after-0123456789']);
  });
});

it('a budget of the account counts the calls to the provider of the team alone', async () => {
  const key = await gateway.createKey({ team: 'led', name: 'counted' });
  const code = async (name: string) => {
    const response = await fetch(`${gateway.url}/p/${name}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] }),
    });
    await response.text();
    return response.headers.get('x-gateway-error');
  };
  const budget = { tokens: 1, period: 'day', providers: ['of-led'] };
  await gateway.admin('PATCH', '/limits/installation', { budgets: [budget] });
  await eventually(async () => (await code('of-led')) === 'insufficient_quota');
  expect(await code('of-all')).toBeNull();
  await gateway.admin('PATCH', '/limits/installation', { budgets: [] });
});

import { exchange } from '../identity/exchanges.js';
import { FakeIssuer } from '../identity/fake-issuer.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { namedProvider } from '../providers/stored.js';
import type { RawProvider } from '../support/raw-provider.js';
import { WsClient, WsProvider } from '../websocket/ws-provider.js';

/* No key of a team gets a call to the provider of another team, whatever it asks for. */

let shared: RawProvider;
let ofSearch: RawProvider;
let ofAds: RawProvider;
let sockets: WsProvider;
let issuer: FakeIssuer;
let gateway: TestGateway;
let search: string;
beforeAll(async () => {
  [shared, ofSearch, ofAds] = (await Promise.all(['shared', 'search', 'ads'].map(namedProvider))) as [
    RawProvider,
    RawProvider,
    RawProvider,
  ];
  sockets = await WsProvider.start();
  issuer = await FakeIssuer.start();
  gateway = await startTestGateway();
  await make('shared', shared.url, null);
  for (const [team, { url }] of [
    ['search', ofSearch],
    ['ads', ofAds],
  ] as const) {
    await gateway.admin('POST', '/teams', { name: team });
    await make(`openai-${team}`, url, team);
  }
  await make('realtime-ads', sockets.url, 'ads');
  await gateway.admin('PATCH', '/providers/shared', { default: true });
  await gateway.admin('POST', '/routes', {
    name: 'route-ads',
    targets: [{ provider: 'shared' }, { provider: 'openai-ads' }],
  });
  search = await key('search', { endpoints: 'all', websockets: true });
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([shared, ofSearch, ofAds, sockets, issuer].map((one) => one.stop()));
});

const make = (name: string, url: string, team: string | null) =>
  gateway.admin('POST', '/providers', { name, url, secret: `sk-of-${name}-0123456789`, team });
let names = 0;
const key = (team: string, members: object = {}) =>
  gateway.createKey({ team, name: `key-${++names}`, ...members });

async function outcome(path: string, secret: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(gateway.url + path, {
    ...init,
    headers: { authorization: `Bearer ${secret}`, ...init.headers },
  });
  const body = await response.text();
  const code = response.headers.get('x-gateway-error');
  return code === null ? body : `${response.status} ${code}`;
}
const NOT_ALLOWED = '403 provider_not_allowed';

/** Status and rejection of an admin request. */
async function adminError(method: string, path: string, body: object, token = ADMIN_TOKEN) {
  const response = await fetch(`${gateway.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error?: { message: string } };
  return `${response.status} ${error?.message ?? ''}`;
}

afterEach(() => {
  expect(ofAds.requests).toEqual([]);
  expect(sockets.handshakes).toEqual([]);
});

describe('a key of another team', () => {
  it('may use its own provider and those of no team', async () => {
    expect(await outcome('/p/openai-search/v1/files', search)).toBe('search');
    expect(await outcome('/p/shared/v1/files', search)).toBe('shared');
    expect(await outcome('/v1/models', search)).toBe('shared');
  });

  it.each(['/p/openai-ads/v1/models', '/p/openai-ads/v1/files', '/p/openai-ads/v1/chat/completions'])(
    'is rejected at %s',
    async (path) => {
      for (const method of ['GET', 'POST', 'DELETE'])
        expect(await outcome(path, search, { method })).toBe(NOT_ALLOWED);
    },
  );

  it('is rejected by a route that has one target of the team, before any target gets the call', async () => {
    const before = shared.requests.length;
    expect(await outcome('/p/route-ads/v1/models', search)).toBe(NOT_ALLOWED);
    expect(shared.requests.length).toBe(before);
  });

  it('may open no WebSocket there', async () => {
    const client = WsClient.connect(gateway.url, '/p/realtime-ads/v1/realtime?model=m', {
      authorization: `Bearer ${search}`,
    });
    const code = await new Promise((resolve, reject) => {
      client.socket.once('open', () => reject(new Error('it was opened')));
      client.socket.once('unexpected-response', (_, response) => {
        response.resume();
        resolve([response.statusCode, response.headers['x-gateway-error']]);
      });
    });
    expect(code).toEqual([403, 'provider_not_allowed']);
  });

  it.each(['openai-ads', 'route-ads'])(
    'cannot be given %s by a list, nor its team a default',
    async (name) => {
      const rejected = new RegExp(`^400 .*no provider or route ${name} that this team may use`);
      const order = { team: 'search', name: `lists ${name}`, providers: [name] };
      expect(await adminError('POST', '/keys', order)).toMatch(rejected);
      expect(await adminError('PATCH', '/teams/search', { default_provider: name })).toMatch(rejected);
      expect(await adminError('PATCH', '/teams/search', { providers: ['shared', name] })).toMatch(rejected);
      const self_service = { keys_per_user: 1, max_days: 1, providers: [name] };
      expect(await adminError('PATCH', '/teams/search', { self_service })).toMatch(rejected);
      expect(await adminError('POST', '/teams', { name: 'new', default_provider: name })).toMatch(rejected);
    },
  );

  it.each(['openai-ads', 'route-ads'])('is rejected by %s also if tables say otherwise', async (name) => {
    const listed = await key('search', { providers: ['shared', 'openai-search'] });
    const { database } = gateway;
    await database.query(`UPDATE gateway_key SET providers = ARRAY['${name}'] WHERE name = 'key-${names}'`);
    await database.query(`UPDATE team SET default_provider = '${name}' WHERE name = 'search'`);
    const rejectedBy = async (path: string, secret: string) => (await outcome(path, secret)) === NOT_ALLOWED;
    await eventually(() => rejectedBy('/v1/models', search));
    await eventually(() => rejectedBy('/v1/models', listed));
    expect(await outcome(`/p/${name}/v1/models`, listed)).toBe(NOT_ALLOWED);
    await gateway.admin('PATCH', '/teams/search', { default_provider: null });
  });

  it('that a member has made for themselves is rejected, too', async () => {
    await gateway.admin('PATCH', '/teams/search', { self_service: { keys_per_user: 9, max_days: 1 } });
    const body = { name: 'jane', role: 'team', teams: ['search'] };
    const { token } = await gateway.admin<{ token: string }>('POST', '/tokens', body);
    const response = await fetch(`${gateway.url}/admin/v1/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ team: 'search', name: 'own' }),
    });
    const own = ((await response.json()) as { key: string }).key;
    expect(await outcome('/p/openai-search/v1/models', own)).toBe('search');
    expect(await outcome('/p/openai-ads/v1/models', own)).toBe(NOT_ALLOWED);
    expect(await outcome('/p/route-ads/v1/models', own)).toBe(NOT_ALLOWED);
  });

  it('is rejected with a token that a trust has issued, too', async () => {
    await gateway.admin('POST', '/keys', { team: 'search', name: 'ci', secret: false, endpoints: 'all' });
    const trust = {
      name: 'ci',
      key: 'search/ci',
      issuer: issuer.url,
      audience: 'gateway',
      claims: { sub: ['job'] },
    };
    await gateway.admin('POST', '/trusts', trust);
    const { token } = await exchange(gateway, 'ci', await issuer.sign());
    expect(await outcome('/p/openai-search/v1/files', token!)).toBe('search');
    expect(await outcome('/p/openai-ads/v1/files', token!)).toBe(NOT_ALLOWED);
  });
});

describe('a provider of a team', () => {
  it('is no default of all teams, nor is a route that sends calls to it', async () => {
    const conflict = /^409 .*is the default of all teams/;
    expect(await adminError('PATCH', '/providers/openai-ads', { default: true })).toMatch(conflict);
    expect(await adminError('PATCH', '/routes/route-ads', { default: true })).toMatch(conflict);
    expect(await adminError('PATCH', '/providers/shared', { team: 'ads' })).toMatch(conflict);
  });

  it('is in no route with one of another team', async () => {
    const targets = [{ provider: 'openai-ads' }, { provider: 'openai-search' }];
    const conflict = /^409 .*route both would send calls to providers of 2 teams/;
    expect(await adminError('POST', '/routes', { name: 'both', targets })).toMatch(conflict);
  });
});

import { startTestGateway, type TestGateway } from '../support/gateway.js';
import type { RawProvider } from '../support/raw-provider.js';
import { namedProvider, outcomeOf, SHARED } from './stored.js';

let postern: TestGateway;
const providers: Record<string, RawProvider> = {};

const add = (body: object) => postern.admin('POST', '/providers', body);
const call = (path: string, key = postern.key) => outcomeOf(postern, path, key);

beforeAll(async () => {
  postern = await startTestGateway(SHARED);
  for (const name of ['one', 'two', 'three']) {
    providers[name] = await namedProvider(name);
    await add({ name, url: providers[name].url, secret: `sk-${name}` });
  }
});
afterAll(async () => {
  await postern.stop();
  for (const provider of Object.values(providers)) await provider.stop();
});

describe('a call', () => {
  it('goes to the provider its path names', async () => {
    expect([await call('/p/one/v1/models'), await call('/p/two/v1/models')]).toEqual(['one', 'two']);
    expect(await call('/p/four/v1/models')).toBe('404 provider_not_found');
    // Reserved for the environment's, which there is none of.
    expect(await call('/p/default/v1/models')).toBe('404 provider_not_found');
  });

  it.each([
    ['bearer', 'Authorization', 'Bearer sk-styled'],
    ['x-api-key', 'x-api-key', 'sk-styled'],
    ['api-key', 'api-key', 'sk-styled'],
    ['x-goog-api-key', 'x-goog-api-key', 'sk-styled'],
  ])('carries the secret as %s', async (auth, header, value) => {
    const name = `styled-${auth}`;
    await add({ name, url: `${providers.one!.url}/base`, auth, secret: 'sk-styled' });
    expect(await call(`/p/${name}/v1/models?a=%2F`)).toBe('one');
    const { head, headers } = providers.one!.requests.at(-1)!;
    expect(head).toMatch(/^GET \/base\/v1\/models\?a=%2F HTTP\/1\.1\r\n/);
    const credentials = headers.filter(([key]) => /^(authorization|(x-|x-goog-)?api-key)$/i.test(key));
    expect(credentials).toEqual([[header, value]]);
  });

  it('carries no credential at all to a provider that takes none', async () => {
    await add({ name: 'open', url: providers.one!.url, secret: null });
    expect(await call('/p/open/v1/models')).toBe('one');
    const { head } = providers.one!.requests.at(-1)!;
    expect(head).not.toMatch(/authorization|api-key/i);
    expect(head).not.toContain(postern.key);
  });

  it('has nowhere to go on /v1 without a default, and says so', async () => {
    const response = await fetch(`${postern.url}/v1/models`, { headers: { 'x-api-key': postern.key } });
    expect([response.status, response.headers.get('x-gateway-error')]).toEqual([
      503,
      'no_provider_configured',
    ]);
    expect(await response.text()).toContain('postern providers add');
  });

  it('goes to the default on /v1, which moves with the flag and ends with it', async () => {
    await postern.admin('PATCH', '/providers/one', { default: true });
    expect(await call('/v1/models')).toBe('one');
    await postern.admin('PATCH', '/providers/two', { default: true });
    expect(await call('/v1/models')).toBe('two');
    const { data } = await postern.admin<{ data: { name: string; default: boolean }[] }>('GET', '/providers');
    expect(data.filter((provider) => provider.default).map(({ name }) => name)).toEqual(['two']);
    await postern.admin('PATCH', '/providers/two', { default: false });
    expect(await call('/v1/models')).toBe('503 no_provider_configured');
  });

  it('goes to the one provider its key is bound to, by both paths, and to no other', async () => {
    await postern.admin('PATCH', '/providers/one', { default: true });
    const bound = await postern.createKey({ providers: ['three'] });
    expect(await call('/v1/models', bound)).toBe('three');
    expect(await call('/p/three/v1/models', bound)).toBe('three');
    for (const path of ['/p/one/v1/models', '/p/four/v1/models', '/p/default/v1/models']) {
      expect(await call(path, bound)).toBe('403 provider_not_allowed');
    }
  });

  it('goes to the default on /v1 with a key of several, when it is among them', async () => {
    await postern.admin('PATCH', '/providers/one', { default: true });
    expect(await call('/v1/models', await postern.createKey({ providers: ['one', 'two'] }))).toBe('one');
    const others = await postern.createKey({ providers: ['two', 'three'] });
    expect(await call('/v1/models', others)).toBe('403 provider_not_allowed');
    expect(await call('/p/two/v1/models', others)).toBe('two');
  });

  it('may have a key for a provider that is removed and comes again later', async () => {
    const later = { name: 'later', url: providers.two!.url, secret: 'sk-later' };
    await add(later);
    const early = await postern.createKey({ providers: ['later'] });
    const removed = await fetch(`${postern.url}/admin/v1/providers/later`, {
      method: 'DELETE',
      headers: { authorization: 'Bearer test-admin-token-0123456789' },
    });
    expect(removed.status).toBe(204);
    expect(await call('/v1/models', early)).toBe('404 provider_not_found');
    await add(later);
    expect(await call('/v1/models', early)).toBe('two');
  });

  it('does not reach a disabled provider, nor a removed one', async () => {
    await add({ name: 'brief', url: providers.two!.url, secret: null, default: true });
    await postern.admin('PATCH', '/providers/brief', { enabled: false });
    expect(await call('/p/brief/v1/models')).toBe('404 provider_not_found');
    expect(await call('/v1/models')).toBe('503 no_provider_configured');
    await postern.admin('PATCH', '/providers/brief', { enabled: true });
    expect(await call('/v1/models')).toBe('two');
    const gone = await fetch(`${postern.url}/admin/v1/providers/brief`, {
      method: 'DELETE',
      headers: { authorization: 'Bearer test-admin-token-0123456789' },
    });
    expect(gone.status).toBe(204);
    expect(await call('/p/brief/v1/models')).toBe('404 provider_not_found');
  });

  it('leaves the name of its provider in its row', async () => {
    const response = await fetch(`${postern.url}/p/two/v1/models`, { headers: { 'x-api-key': postern.key } });
    await response.arrayBuffer();
    const row = await postern.row(response.headers.get('x-gateway-request-id')!);
    expect(row).toMatchObject({ provider: 'two', path: '/p/two/v1/models', outcome: 'completed' });
  });

  it('uses a changed url and secret from the moment the change is answered', async () => {
    await add({ name: 'moving', url: providers.one!.url, secret: 'sk-before' });
    await postern.admin('PATCH', '/providers/moving', { url: providers.two!.url, secret: 'sk-after' });
    expect(await call('/p/moving/v1/models')).toBe('two');
    expect(providers.two!.requests.at(-1)!.headers).toContainEqual(['Authorization', 'Bearer sk-after']);
  });
});

describe('the provider of the environment', () => {
  it('wins over a stored default and is called default', async () => {
    const own = await namedProvider('own');
    const other = await startTestGateway({ ...SHARED, PROVIDER_URL: own.url }, postern.database);
    await postern.admin('PATCH', '/providers/one', { default: true });
    const key = await postern.createKey();
    for (const path of ['/v1/models', '/p/default/v1/models'])
      expect(await outcomeOf(other, path, key)).toBe('own');
    expect(await outcomeOf(other, '/p/one/v1/models', key)).toBe('one');
    const bound = await postern.createKey({ providers: ['one'] });
    expect(await outcomeOf(other, '/v1/models', bound)).toBe('one');
    expect(await outcomeOf(other, '/p/default/v1/models', bound)).toBe('403 provider_not_allowed');
    await other.stop();
    await own.stop();
  });
});

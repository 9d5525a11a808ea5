import { randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import type { RawProvider } from '../support/raw-provider.js';
import { namedProvider, outcomeOf } from './stored.js';

const newKey = () => randomBytes(32).toString('base64');
const oldKey = newKey();
let provider: RawProvider;
let database: TestDatabase;
let key: string;

beforeAll(async () => {
  provider = await namedProvider('it');
  database = await createDatabase();
  const first = await startTestGateway({ MASTER_KEY: oldKey }, database);
  ({ key } = first);
  for (const name of ['one', 'two']) {
    await first.admin('POST', '/providers', { name, url: provider.url, secret: `sk-of-${name}` });
  }
  await first.admin('POST', '/providers', { name: 'open', url: provider.url, secret: null });
  await first.stop();
});
afterAll(async () => {
  await provider.stop();
  await database.drop();
});

const states = async (gateway: TestGateway) => {
  const { data } = await gateway.admin<{ data: { name: string; secret_state: string }[] }>(
    'GET',
    '/providers',
  );
  return Object.fromEntries(data.map(({ name, secret_state: state }) => [name, state]));
};

async function withGateway(
  variables: Record<string, string>,
  use: (gateway: TestGateway) => Promise<void>,
): Promise<void> {
  const gateway = await startTestGateway(variables, database);
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

it('with a wrong master key rejects the sealed ones in words, and nothing else', () =>
  withGateway({ MASTER_KEY: newKey() }, async (gateway) => {
    const seen = provider.requests.length;
    for (const name of ['one', 'two']) {
      const response = await fetch(`${gateway.url}/p/${name}/v1/models`, { headers: { 'x-api-key': key } });
      expect([response.status, response.headers.get('x-gateway-error')]).toEqual([
        503,
        'no_provider_configured',
      ]);
      const text = await response.text();
      expect(text).toContain('MASTER_KEY');
      expect(text).not.toContain('sk-of');
    }
    expect(provider.requests).toHaveLength(seen);
    expect(await outcomeOf(gateway, '/p/open/v1/models', key)).toBe('it');
    expect(await states(gateway)).toEqual({ one: 'unreadable', two: 'unreadable', open: 'none' });
    await expect(gateway.admin('POST', '/providers/one/test')).rejects.toThrow(
      /409.*cannot be decrypted.*MASTER_KEY/,
    );
    await gateway.admin('POST', '/providers', { name: 'fresh', url: provider.url, secret: 'sk-fresh' });
    expect(await outcomeOf(gateway, '/p/fresh/v1/models', key)).toBe('it');
    // The remedy that the message names.
    await gateway.admin('PATCH', '/providers/fresh', { secret: 'sk-fresher' });
    expect(provider.requests.at(-1)!.headers).toContainEqual(['Authorization', 'Bearer sk-fresh']);
    await database.query("DELETE FROM provider WHERE name = 'fresh'");
  }));

it('with the old master key as the previous one opens everything', () =>
  withGateway({ MASTER_KEY: newKey(), MASTER_KEY_PREVIOUS: oldKey }, async (gateway) => {
    expect(await outcomeOf(gateway, '/p/one/v1/models', key)).toBe('it');
    expect(provider.requests.at(-1)!.headers).toContainEqual(['Authorization', 'Bearer sk-of-one']);
    expect(await states(gateway)).toEqual({ one: 'sealed', two: 'sealed', open: 'none' });
  }));

it('does not open a secret that was put into another row', async () => {
  const sealed = await database.query<{ name: string; sealed_secret: Buffer }>(
    'SELECT name, sealed_secret FROM provider WHERE sealed_secret IS NOT NULL ORDER BY name',
  );
  const put = async (name: string, secret: Buffer) =>
    database.query('UPDATE provider SET sealed_secret = $2 WHERE name = $1', [name, secret]);
  await put('one', sealed[1]!.sealed_secret);
  await put('two', sealed[0]!.sealed_secret);
  await withGateway({ MASTER_KEY: oldKey }, async (gateway) => {
    for (const name of ['one', 'two']) {
      expect(await outcomeOf(gateway, `/p/${name}/v1/models`, key)).toBe('503 no_provider_configured');
    }
    // Nor one that was cut or made up.
    for (const junk of [Buffer.alloc(0), sealed[0]!.sealed_secret.subarray(0, 20), randomBytes(60)]) {
      await put('one', junk);
      expect((await states(gateway)).one).toBe('unreadable');
    }
    await put('one', sealed[0]!.sealed_secret);
    await put('two', sealed[1]!.sealed_secret);
    expect(await states(gateway)).toEqual({ one: 'sealed', two: 'sealed', open: 'none' });
  });
});

it.each(['http://169.254.169.254', 'ftp://127.0.0.1', 'nonsense', 'http://u:p@127.0.0.1'])(
  'makes no calls to a url that was written into the table: %s',
  async (url) => {
    await withGateway({ MASTER_KEY: oldKey }, async (gateway) => {
      await database.query("UPDATE provider SET url = $1 WHERE name = 'open'", [url]);
      await gateway.admin('PATCH', '/providers/one', { enabled: true });
      expect(await outcomeOf(gateway, '/p/open/v1/models', key)).toBe('503 no_provider_configured');
      expect(await outcomeOf(gateway, '/p/one/v1/models', key)).toBe('it');
      await database.query("UPDATE provider SET url = $1 WHERE name = 'open'", [provider.url]);
    });
  },
);

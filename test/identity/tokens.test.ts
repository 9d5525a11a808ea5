import { KeyLookupService } from '../../src/auth/key-lookup.service.js';
import { KeyUseService } from '../../src/auth/key-use.service.js';
import { TokenRetention } from '../../src/auth/token-retention.service.js';
import { changesApplied } from '../support/changes-applied.js';
import { eventually, soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { storeTokens, storeTrust } from './stored-tokens.js';

interface KeyAnswer {
  id: string;
  key: string | null;
  prefix: string | null;
  last_used_at: string | null;
}

let provider: RawProvider;
let replicas: TestGateway[];
let first: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  first = await startTestGateway({ PROVIDER_URL: provider.url });
  const others = [1, 2].map(() => startTestGateway({ PROVIDER_URL: provider.url }, first.database));
  replicas = [first, ...(await Promise.all(others))];
});
afterAll(async () => {
  for (const replica of [...replicas].reverse()) await replica.stop();
  await provider.stop();
});

async function statusAt(replica: TestGateway, key: string): Promise<number> {
  const response = await fetch(`${replica.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

const statuses = (key: string) => Promise.all(replicas.map((replica) => statusAt(replica, key)));

/** A key without a secret, with a trust and a token that every replica keeps. */
async function issue(): Promise<{ keyId: string; trustId: string; token: string }> {
  const body = { team: 'default', name: `key-${Math.random()}`, secret: false };
  const { id: keyId } = await first.admin<KeyAnswer>('POST', '/keys', body);
  const trustId = await storeTrust(first.database, keyId);
  const [token] = await storeTokens(first.database, { keyId, trustId });
  expect(await statuses(token!)).toEqual([200, 200, 200]);
  return { keyId, trustId, token: token! };
}

async function changes(): Promise<bigint> {
  const rows = await first.database.query<{ value: string }>(
    `SELECT value FROM change_counter WHERE name = 'keys'`,
  );
  return BigInt(rows[0]!.value);
}

async function rejectedEverywhere(token: string): Promise<void> {
  await Promise.all(replicas.map((replica) => soon(async () => (await statusAt(replica, token)) === 401)));
}

describe('a token ends on every replica', () => {
  type Issued = Awaited<ReturnType<typeof issue>>;
  const query = (sql: string, of: (issued: Issued) => string) => (issued: Issued) =>
    first.database.query(sql, [of(issued)]);
  const ends: [string, (issued: Issued) => Promise<unknown>][] = [
    ['with its trust', query('UPDATE trust SET enabled = false WHERE id = $1', ({ trustId }) => trustId)],
    ['when its trust is deleted', query('DELETE FROM trust WHERE id = $1', ({ trustId }) => trustId)],
    ['with its key', ({ keyId }) => first.admin('POST', `/keys/${keyId}/revoke`)],
    [
      'when its key is rotated',
      ({ keyId }) => first.admin('POST', `/keys/${keyId}/rotate`, { grace_seconds: 60 }),
    ],
    [
      'when it is ended',
      query('UPDATE gateway_key_secret SET expires_at = now() WHERE trust_id = $1', ({ trustId }) => trustId),
    ],
    [
      'when it is deleted',
      query('DELETE FROM gateway_key_secret WHERE trust_id = $1', ({ trustId }) => trustId),
    ],
  ];
  it.each(ends)('%s', async (_, end) => {
    const issued = await issue();
    const before = await changes();
    await end(issued);
    expect(await changes()).toBeGreaterThan(before);
    await rejectedEverywhere(issued.token);
  });

  it('and others of the same key go on', async () => {
    const { keyId, trustId, token } = await issue();
    const [other] = await storeTokens(first.database, {
      keyId,
      trustId: await storeTrust(first.database, keyId),
    });
    expect(await statuses(other!)).toEqual([200, 200, 200]);
    await first.database.query('UPDATE trust SET enabled = false WHERE id = $1', [trustId]);
    await rejectedEverywhere(token);
    expect(await statuses(other!)).toEqual([200, 200, 200]);
  });

  it('after a rotation, and tokens that are issued later work', async () => {
    const { keyId, trustId, token } = await issue();
    await first.admin('POST', `/keys/${keyId}/rotate`);
    await rejectedEverywhere(token);
    const [later] = await storeTokens(first.database, { keyId, trustId });
    expect(await statuses(later!)).toEqual([200, 200, 200]);
  });
});

describe('the caches of static keys', () => {
  it('keep every grant while tokens are issued and deleted after their end', async () => {
    const { keyId, trustId } = await issue();
    const lookup = first.gateway.app.get(KeyLookupService);
    await changesApplied(first);
    expect(await statusAt(first, first.key)).toBe(200);
    const before = { changes: await changes(), misses: lookup.counts.misses, version: lookup.version };
    const tokens = await storeTokens(first.database, { keyId, trustId, count: 1_000 });
    await storeTokens(first.database, { keyId, trustId, count: 1_500 }, `now() - interval '25 hours'`);
    expect(await statusAt(first, tokens[0]!)).toBe(200);
    await first.gateway.app.get(TokenRetention).run();
    // The interval of another replica may have locked some, which it deletes itself.
    await eventually(async () => {
      const [left] = await first.database.query<{ count: number }>(
        'SELECT count(*)::int AS count FROM gateway_key_secret WHERE trust_id = $1',
        [trustId],
      );
      return left!.count === 1_001;
    });
    expect(await statusAt(first, first.key)).toBe(200);
    // One look-up: that of the token.
    const after = { changes: await changes(), misses: lookup.counts.misses - 1, version: lookup.version };
    expect(after).toEqual(before);
  });

  it('hear once of a trust that ends with a thousand tokens', async () => {
    const { keyId, trustId } = await issue();
    await storeTokens(first.database, { keyId, trustId, count: 1_000 });
    const before = await changes();
    await first.database.query('DELETE FROM trust WHERE id = $1', [trustId]);
    expect(await changes()).toBe(before + 1n);
  });
});

describe('a key without a secret', () => {
  it('has neither a secret nor a prefix, and is last used when a token of it is', async () => {
    const body = { team: 'default', name: 'tokens only', secret: false };
    const made = await first.admin<KeyAnswer>('POST', '/keys', body);
    expect(made).toMatchObject({ key: null, prefix: null, last_used_at: null });
    const trustId = await storeTrust(first.database, made.id);
    const [token] = await storeTokens(first.database, { keyId: made.id, trustId });
    expect(await statusAt(first, token!)).toBe(200);
    await first.gateway.app.get(KeyUseService).write();
    // The interval's own write may have taken it, and be under way.
    const used = await eventually(async () => {
      const key = await first.admin<KeyAnswer>('GET', `/keys/${made.id}`);
      return key.last_used_at !== null && key;
    });
    expect(used.prefix).toBeNull();
    const { data } = await first.admin<{ data: KeyAnswer[] }>('GET', '/keys?name=tokens%20only');
    expect(data).toMatchObject([{ id: made.id, prefix: null }]);
  });

  it('shows only its static secret once it has one, whatever tokens it has', async () => {
    const { keyId, trustId } = await issue();
    const { key, prefix } = await first.admin<KeyAnswer>('POST', `/keys/${keyId}/rotate`);
    expect(prefix).toBe(key!.slice(0, 12));
    await storeTokens(first.database, { keyId, trustId });
    expect((await first.admin<KeyAnswer>('GET', `/keys/${keyId}`)).prefix).toBe(prefix);
  });
});

import { randomUUID } from 'node:crypto';
import { KeyCache } from '../../src/auth/key-cache.js';
import { KeyChangesService } from '../../src/auth/key-changes.service.js';
import { generateKey } from '../../src/keys/key-secret.js';
import { never } from '../support/never.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';

let provider: RawProvider;
let database: TestDatabase;
let forwarder: TcpForwarder;
let gateway: TestGateway;

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
});
afterAll(() => provider.stop());
beforeEach(async () => {
  database = await createDatabase();
  forwarder = await TcpForwarder.to(database.url);
  await forwarder.open();
});
afterEach(async () => {
  await gateway.stop();
  await forwarder.close();
  await database.drop();
});

async function call(gateway: TestGateway, key: string): Promise<[number, string | null]> {
  const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return [response.status, response.headers.get('x-gateway-error')];
}

/** Starts a gateway that reaches Postgres through the forwarder, and waits until it was notified of its first key. */
async function start(variables: Record<string, string> = {}): Promise<TestGateway> {
  gateway = await startTestGateway(
    { PROVIDER_URL: provider.url, DATABASE_URL: forwarder.url, ...variables },
    database,
  );
  const { app } = gateway.gateway;
  await eventually(() => app.get(KeyChangesService).verifiedAt > 0);
  // Notifications come in the order of their commits: once this one is there, which changes nothing, none of the key follows.
  const marker = randomUUID();
  const forget = jest.spyOn(app.get(KeyCache), 'forget');
  await eventually(async () => {
    await database.query("SELECT pg_notify('postern_keys', $1)", [`0 ${marker}`]);
    return forget.mock.calls.some(([id]) => id === marker);
  });
  forget.mockRestore();
  return gateway;
}

never(
  'serves known keys while Postgres is unavailable, asks callers with unknown ones to retry, and recovers by itself',
  async () => {
    const gateway = await start();
    expect(await call(gateway, gateway.key)).toEqual([200, null]);
    const unused = await gateway.createKey();
    await forwarder.close();
    expect(await call(gateway, gateway.key)).toEqual([200, null]);
    expect(await call(gateway, unused)).toEqual([503, 'database_unavailable']);
    expect(await call(gateway, generateKey())).toEqual([503, 'database_unavailable']);
    // A wrong checksum needs no Postgres to be rejected.
    expect(await call(gateway, `${generateKey().slice(0, -1)}!`)).toEqual([401, 'invalid_api_key']);
    await forwarder.open();
    await eventually(async () => (await call(gateway, unused))[0] === 200);
    // The rows of the calls made meanwhile are there.
    await eventually(async () => (await gateway.rowCount()) >= 3);
  },
);

it('stops serving known keys once Postgres was unavailable for KEY_CACHE_STALE_MS', async () => {
  const gateway = await start({ KEY_CACHE_STALE_MS: '2500' });
  expect(await call(gateway, gateway.key)).toEqual([200, null]);
  await forwarder.close();
  await eventually(async () => (await call(gateway, gateway.key))[1] === 'database_unavailable');
});

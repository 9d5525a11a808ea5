import { deferred } from '../support/deferred.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import { once, open } from './once.js';

let provider: RawProvider;
let database: TestDatabase;
let road: TcpForwarder;
let gateway: TestGateway;
let auth: string;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  database = await createDatabase();
  road = await TcpForwarder.to(database.url);
  await road.open();
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, DATABASE_URL: road.url }, database);
  auth = `Authorization: Bearer ${await gateway.createKey({ idempotency: 'replay' })}`;
  provider.script = ok;
  // Known from here on.
  await once(gateway, [auth]);
});
afterAll(async () => {
  await gateway.stop();
  await road.close();
  await database.drop();
  await provider.stop();
});
beforeEach(() => {
  provider.requests.length = 0;
});

async function ok(req: Parameters<RawProvider['script']>[0]): Promise<void> {
  await req.body;
  req.socket.write(answer('200 OK', [], 'ok'));
}

it('refuses such calls without Postgres, serves all others, and recovers by itself', async () => {
  await road.close();
  const headers = [auth, 'Idempotency-Key: away'];
  const refused = await once(gateway, headers);
  expect([refused.status, refused.header('x-gateway-error'), refused.header('retry-after')]).toEqual([
    503,
    'database_unavailable',
    '1',
  ]);
  expect(refused.body.toString()).toContain('Idempotency-Key');
  expect((await once(gateway, [auth])).status).toBe(200);
  expect(provider.requests.length).toBe(1);
  await road.open();
  const reply = await eventually(async () => {
    const again = await once(gateway, headers);
    return again.status === 200 && again;
  });
  expect(reply.header('idempotent-replayed')).toBeUndefined();
  expect(provider.requests.length).toBe(2);
});

it('keeps an answer that came while Postgres was away', async () => {
  const goOn = deferred();
  provider.script = async (req) => {
    await goOn.promise;
    await ok(req);
  };
  const headers = [auth, 'Idempotency-Key: meanwhile'];
  const client = await open(gateway, headers);
  await eventually(() => provider.requests.length === 1);
  await road.close();
  goOn.resolve();
  expect((await client.answer()).body.toString()).toBe('ok');
  await road.open();
  const repeat = await eventually(async () => {
    const reply = await once(gateway, headers);
    return reply.status === 200 && reply;
  });
  expect(repeat.header('idempotent-replayed')).toBe('true');
  expect(provider.requests.length).toBe(1);
});

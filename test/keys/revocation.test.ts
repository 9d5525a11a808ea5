import { RawProvider, answer } from '../support/raw-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let provider: RawProvider;
let replicas: TestGateway[];

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  const first = await startTestGateway({ PROVIDER_URL: provider.url });
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

async function issue(): Promise<{ id: string; key: string }> {
  const made = await replicas[0]!.admin<{ id: string; key: string }>('POST', '/keys', {
    team: 'default',
    name: `key-${Math.random()}`,
  });
  // Every replica keeps it from now on.
  expect(await statuses(made.key)).toEqual([200, 200, 200]);
  return made;
}

/** Worst time over the replicas from the change to the first refusal, in ms. */
async function refusedEverywhere(key: string, boundMs: number): Promise<number> {
  const from = performance.now();
  await Promise.all(
    replicas.map((replica) => eventually(async () => (await statusAt(replica, key)) === 401, boundMs)),
  );
  return performance.now() - from;
}

it('ends a key on every replica', async () => {
  const { id, key } = await issue();
  await replicas[0]!.admin('POST', `/keys/${id}/revoke`);
  const worst = await refusedEverywhere(key, 1_000);
  process.stdout.write(`revocation seen by three replicas after ${worst.toFixed(0)} ms\n`);
});

it('ends the keys of a disabled team, and lets them in again', async () => {
  const { key } = await issue();
  const { database } = replicas[0]!;
  await database.query('UPDATE team SET disabled = true');
  await refusedEverywhere(key, 1_000);
  await database.query('UPDATE team SET disabled = false');
  await eventually(async () => (await statuses(key)).every((status) => status === 200), 1_000);
});

it('ends a key at its expiry without any change in Postgres', async () => {
  const made = await replicas[0]!.admin<{ key: string }>('POST', '/keys', {
    team: 'default',
    name: 'short',
    expires_at: new Date(Date.now() + 700).toISOString(),
  });
  expect(await statuses(made.key)).toEqual([200, 200, 200]);
  await refusedEverywhere(made.key, 2_000);
});

it('does not trust the connection it listens on: a killed one is replaced and everything compared', async () => {
  const { id, key } = await issue();
  const { database } = replicas[0]!;
  // In one transaction, so that the change happens while nobody listens.
  await database.query(`
    WITH cut AS (
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'postern-changes' AND datname = current_database()
    ) SELECT count(*) FROM cut`);
  await database.query('UPDATE gateway_key SET revoked_at = now() WHERE id = $1', [id]);
  await refusedEverywhere(key, 3_000);
});

it('learns of a change whose notification was swallowed', async () => {
  const { id, key } = await issue();
  const { database } = replicas[0]!;
  // What a transaction-pooling proxy does to LISTEN: the change is counted and nobody is told.
  await database.query(`
    BEGIN;
    SET LOCAL session_replication_role = replica;
    UPDATE gateway_key SET revoked_at = now() WHERE id = '${id}';
    UPDATE change_counter SET value = value + 1 WHERE name = 'keys';
    COMMIT`);
  const worst = await refusedEverywhere(key, 3_000);
  process.stdout.write(`without notification after ${worst.toFixed(0)} ms\n`);
});

it('is not misled by what anybody else may notify', async () => {
  const { id, key } = await issue();
  const { database } = replicas[0]!;
  for (const payload of ['', ' ', 'x', 'x y', '1', '1 ', '-1 x', '1.5 x', `9 ${'x'.repeat(7_000)}`]) {
    for (const channel of ['postern_keys', 'postern_providers', 'postern_echo']) {
      await database.query('SELECT pg_notify($1, $2)', [channel, payload]);
    }
  }
  expect(await statuses(key)).toEqual([200, 200, 200]);
  await replicas[0]!.admin('POST', `/keys/${id}/revoke`);
  await refusedEverywhere(key, 1_000);
});

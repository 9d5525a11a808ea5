import { createDatabase, type TestDatabase } from '../support/database.js';
import { soon } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

let database: TestDatabase;
let provider: RawProvider;
let workplaces: Workplace[];

beforeAll(async () => {
  database = await createDatabase();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  workplaces = await Promise.all([1, 2, 3].map(() => Workplace.make()));
});
afterAll(async () => {
  for (const workplace of workplaces) await workplace.remove();
  await provider.stop();
  await database.drop();
});

it('a revoked key is rejected by three processes under load', async () => {
  const settings = {
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
    ADMIN_TOKEN: 'test-admin-token-0123456789',
  };
  const replicas = workplaces.map((workplace) => workplace.gateway(settings));
  const urls = await Promise.all(replicas.map((replica) => replica.ready()));
  const admin = async <T>(path: string, body: object): Promise<T> => {
    const response = await fetch(`${urls[0]}/admin/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${settings.ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.ok).toBe(true);
    return (await response.json()) as T;
  };
  const statusAt = async (url: string, key: string): Promise<number> => {
    const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    await response.arrayBuffer();
    return response.status;
  };

  // The load: another key that stays good and must never be rejected meanwhile.
  const steady = await admin<{ key: string }>('/keys', { team: 'default', name: 'steady' });
  let loaded = true;
  const rejected: number[] = [];
  const load = urls.flatMap((url) =>
    [1, 2].map(async () => {
      while (loaded) {
        const status = await statusAt(url, steady.key);
        if (status !== 200) rejected.push(status);
      }
    }),
  );

  let worst = 0;
  for (let round = 0; round < 3; round++) {
    const { id, key } = await admin<{ id: string; key: string }>('/keys', {
      team: 'default',
      name: `round-${round}`,
    });
    expect(await Promise.all(urls.map((url) => statusAt(url, key)))).toEqual([200, 200, 200]);
    await admin(`/keys/${id}/revoke`, {});
    const from = performance.now();
    await Promise.all(urls.map((url) => soon(async () => (await statusAt(url, key)) === 401)));
    worst = Math.max(worst, performance.now() - from);
  }
  loaded = false;
  await Promise.all(load);
  expect(rejected).toEqual([]);
  process.stdout.write(`revocation under load, worst of 3 over 3 processes: ${worst.toFixed(0)} ms\n`);
  for (const replica of replicas) expect((await replica.stop()).code).toBe(0);
});

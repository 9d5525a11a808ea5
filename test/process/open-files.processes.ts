import type { TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';
import type { Workplace } from '../support/workplace.js';

// Fewer and Node cannot load the gateway.
const OPEN_FILES = 512;
/** What the limit leaves for connections to providers. */
const MOST = 201;
const CALLS = 230;

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;
const release = deferred();

beforeAll(async () => {
  site = await Site.make({
    script: async ({ body, socket }) => {
      await body;
      await release.promise;
      socket.write(answer('200 OK', [], 'ok'));
    },
    empty: true,
  });
  ({ database, workplace, provider } = site);
});
afterAll(() => site.remove());

it('more calls than the descriptors are enough for get 503 and are not forwarded', async () => {
  const gateway = workplace.gateway(
    { DATABASE_URL: database.url, PROVIDER_URL: provider.url },
    undefined,
    OPEN_FILES,
  );
  const [url, key] = await Promise.all([gateway.ready(), gateway.firstKey()]);
  const headers = [`Authorization: Bearer ${key}`];
  const replies: ReceivedResponse[] = [];
  const clients: RawClient[] = [];
  for (let i = 0; i < CALLS; i++) {
    const client = await RawClient.connect(Number(new URL(url).port));
    clients.push(client);
    client.send(request('POST /v1/chat/completions', headers, '{}'));
    void client.answer().then((reply) => replies.push(reply));
  }
  await eventually(() => replies.length === CALLS - MOST);
  await eventually(() => provider.requests.length >= MOST);
  expect(provider.requests).toHaveLength(MOST);
  for (const reply of replies) {
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([503, 'overloaded']);
    expect(reply.header('retry-after')).toBe('1');
    expect(reply.body.toString()).toContain('Too many calls in flight');
  }
  release.resolve();
  await eventually(() => replies.length === CALLS);
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(MOST);

  // Their connections are the next calls'.
  const client = clients[0]!;
  client.send(request('POST /v1/chat/completions', headers, '{}'));
  expect((await client.answer()).status).toBe(200);
  for (const one of clients) one.destroy();
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  expect(provider.requests).toHaveLength(MOST + 1);
  expect(await database.query('SELECT count(*)::int AS count FROM request_log')).toEqual([
    { count: MOST + 1 },
  ]);
});

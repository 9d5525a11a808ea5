import type { TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { complete, send, Site } from '../support/site.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';

let site: Site;
let database: TestDatabase;
let provider: RawProvider;
let key: string;

beforeEach(async () => {
  site = await Site.make({
    script: async ({ body, head, socket }) => {
      await body;
      if (!head.includes('x-hang')) socket.write(answer('200 OK', [], 'ok'));
    },
  });
  ({ database, provider } = site);
});
afterEach(() => site.remove());

const start = (databaseUrl = database.url) => site.gateway({ DATABASE_URL: databaseUrl });

/** Makes calls one after the other. @returns their request ids */
async function calls(url: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await complete(url, key));
  return ids;
}

const rows = () =>
  database.query<{ id: string; outcome: string; status: number | null }>(
    'SELECT id, outcome, status FROM request_log ORDER BY id',
  );

it('loses no row and doubles none when it is killed, right after a response and during a call', async () => {
  const killed = start();
  const url = await killed.ready();
  key = await killed.firstKey();
  const hanging = await send(url, key, ['x-hang: 1']);
  await eventually(() => provider.requests.length === 1);
  const ids = await calls(url, 40);
  await killed.process.kill();
  await hanging.closed;

  const next = start();
  await next.ready();
  await eventually(async () => (await rows()).length >= ids.length + 1);
  const [cut, ...completed] = await rows();
  expect(cut).toMatchObject({ outcome: 'interrupted', status: null });
  expect(completed).toEqual(ids.map((id) => ({ id, outcome: 'completed', status: 200 })));
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});

it('keeps the rows of calls that ended while Postgres was unavailable, over a kill and a stop', async () => {
  const forwarder = await TcpForwarder.to(database.url);
  await forwarder.open();
  const killed = start(forwarder.url);
  const url = await killed.ready();
  key = await killed.firstKey();
  const goOn = deferred();
  provider.script = async ({ body, socket }) => {
    await body;
    await goOn.promise;
    socket.write(answer('200 OK', [], 'ok'));
  };
  const clients = [await send(url, key), await send(url, key), await send(url, key)];
  await eventually(() => provider.requests.length === clients.length);
  await forwarder.close();
  goOn.resolve();
  const replies = await Promise.all(clients.map((client) => client.answer()));
  const ids = replies.map((reply) => reply.header('x-gateway-request-id')!).sort();
  await killed.process.kill();

  // Started and stopped without Postgres: nothing may be thrown away.
  const cutOff = start(forwarder.url);
  await cutOff.listening();
  expect(await cutOff.stop()).toEqual({ code: 0, signal: null });
  expect(await rows()).toEqual([]);

  const next = start();
  await next.ready();
  await eventually(async () => (await rows()).length >= ids.length);
  expect(await rows()).toEqual(ids.map((id) => ({ id, outcome: 'completed', status: 200 })));
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});

import { Scrape } from '../observability/scrape.js';
import { eventually, soon } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';

/** Columns of a key on which no call depends. */
const NO_CALL = [
  'id',
  'name',
  'created_at',
  'owner',
  'owner_id',
  'person_id',
  'origin',
  'owned_by',
  'contact',
  'cost_center',
  'note',
  'tokens_used_at',
  'latest_expiry',
  'version',
];

let provider: RawProvider;
let first: TestGateway;
let replica: TestGateway;
beforeAll(async () => {
  let calls = 0;
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], `${++calls}`));
  });
  first = await startTestGateway({ PROVIDER_URL: provider.url });
  replica = await startTestGateway({ PROVIDER_URL: provider.url }, first.database);
});
afterAll(async () => {
  await replica.stop();
  await first.stop();
  await provider.stop();
});

async function issue(): Promise<{ id: string; key: string }> {
  const name = `key-${Math.random()}`;
  return first.admin<{ id: string; key: string }>('POST', '/keys', { team: 'default', name });
}

/** What the replica responds. */
async function send(line: string, key: string, headers: string[] = [], body = '') {
  const client = await RawClient.connect(replica.port);
  client.send(request(line, [`Authorization: Bearer ${key}`, ...headers], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

never('counts a change of every column of a key on which calls depend', async () => {
  const columns = await first.database.query<{ name: string; counted: boolean }>(
    `SELECT column_name AS name, EXISTS (
       SELECT FROM information_schema.triggered_update_columns t
       WHERE t.event_object_table = 'gateway_key' AND t.event_object_column = c.column_name) AS counted
     FROM information_schema.columns c WHERE table_name = 'gateway_key'`,
  );
  expect(columns.length).toBeGreaterThan(10);
  const uncounted = columns.filter(({ name, counted }) => !counted && !NO_CALL.includes(name));
  expect(uncounted.map(({ name }) => name)).toEqual([]);
});

describe('a change is in force on another gateway', () => {
  it('of whether a key may open WebSockets', async () => {
    const { id, key } = await issue();
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const headers = [...upgrade, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
    const status = async () => (await send('GET /v1/responses', key, headers)).status;
    expect(await status()).toBe(426);
    await first.admin('PATCH', `/keys/${id}`, { websockets: true });
    // The provider accepts none.
    await soon(async () => (await status()) === 200);
    await first.admin('PATCH', `/keys/${id}`, { websockets: false });
    await soon(async () => (await status()) === 426);
  });

  it('of the response cache of a key', async () => {
    const { id, key } = await issue();
    const call = () => send('POST /v1/chat/completions', key, [], '{"model":"m"}');
    const isHit = async () => (await call()).header('x-gateway-cache') === 'hit';
    expect(await isHit()).toBe(false);
    await first.admin('PATCH', `/keys/${id}`, { cache: { ttl_seconds: 600 } });
    await eventually(isHit);
    await first.admin('PATCH', `/keys/${id}`, { cache: null });
    await soon(async () => !(await isHit()));
  });

  it('of what happens to a call whose client disconnects, of a key and of a provider', async () => {
    const { id, key } = await issue();
    const { script } = provider;
    provider.script = async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD);
    };
    await first.admin('POST', '/providers', { name: 'left', url: provider.url, secret: null });
    const finishing = async () => (await Scrape.of(replica.url)).sum('postern_finishing_calls');
    const isFinished = async () => {
      const client = await RawClient.connect(replica.port);
      const headers = [`Authorization: Bearer ${key}`];
      client.send(request('POST /p/left/v1/chat/completions', headers, '{"model":"m"}'));
      await client.head();
      const { socket, closed } = provider.requests.at(-1)!;
      let isCut = false;
      void closed.then(() => (isCut = true));
      client.destroy();
      const end = await eventually(async () =>
        isCut ? 'cancelled' : (await finishing()) === 1 && 'finished',
      );
      socket.destroy();
      await eventually(async () => (await finishing()) === 0);
      return end === 'finished';
    };
    await eventually(async () => (await send('GET /p/left/v1/nothing', key)).status === 403);
    expect(await isFinished()).toBe(false);
    await first.admin('PATCH', '/providers/left', { on_disconnect: 'finish' });
    await soon(isFinished);
    await first.admin('PATCH', `/keys/${id}`, { on_disconnect: 'cancel' });
    await soon(async () => !(await isFinished()));
    await first.admin('PATCH', `/keys/${id}`, { on_disconnect: null });
    await soon(isFinished);
    provider.script = script;
  });

  it('of a route: a new one, its targets, and its end', async () => {
    await first.admin('POST', '/providers', { name: 'gone', url: 'http://127.0.0.1:9', secret: null });
    const status = async () => (await send('GET /p/main/v1/models', first.key)).status;
    expect(await status()).toBe(404);
    await first.admin('POST', '/routes', { name: 'main', targets: [{ provider: 'default' }] });
    await soon(async () => (await status()) === 200);
    await first.admin('PATCH', '/routes/main', { targets: [{ provider: 'gone' }] });
    await soon(async () => (await status()) === 502);
    await fetch(`${first.url}/admin/v1/routes/main`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    await soon(async () => (await status()) === 404);
  });
});

import type { SinkView } from '../../src/sinks/sinks.schema.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { FakeSink } from './fake-sink.js';
import { insertCalls } from './log-rows.js';

const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');
let gateway: TestGateway;
let sink: FakeSink;
let names = 0;
beforeAll(async () => {
  gateway = await startTestGateway({ MASTER_KEY });
});
afterAll(() => gateway.stop());
beforeEach(async () => {
  await gateway.database.query('DELETE FROM sink');
  await gateway.database.query('DELETE FROM request_log');
  sink = await new FakeSink().listen();
});
afterEach(() => sink.close());

const create = (more: object = {}) =>
  gateway.admin<SinkView>('POST', '/sinks', {
    name: `rows-${++names}`,
    kind: 'http',
    url: `${sink.url}/canary-path?token=canary-query`,
    ...more,
  });
const get = (id: string) => gateway.admin<SinkView>('GET', `/sinks/${id}`);
const logIds = async () =>
  (await gateway.database.query<{ id: string }>('SELECT id FROM request_log ORDER BY id')).map(
    ({ id }) => id,
  );
const until = (id: string, state: string) =>
  eventually(async () => {
    const view = await get(id);
    return view.state === state && view;
  });

it('sends every row once, as NDJSON with the columns of the log, under an Idempotency-Key', async () => {
  await insertCalls(gateway.database.url, 2_500);
  const { id, url } = await create({ secret: 'canary-secret' });
  expect(url).toBe(`${sink.url}/…`);
  await eventually(() => sink.ids.length === 2_500);
  await insertCalls(gateway.database.url, 10);
  await eventually(() => sink.ids.length === 2_510);
  expect(sink.ids).toEqual(await logIds());
  expect(sink.rows).toHaveLength(2_510);
  const keys = sink.received.map(({ headers }) => headers['idempotency-key']);
  expect(new Set(keys).size).toBe(keys.length);
  expect(sink.received[0]).toMatchObject({
    path: '/canary-path?token=canary-query',
    headers: { authorization: 'Bearer canary-secret', 'content-type': 'application/x-ndjson' },
  });
  const [row] = sink.rows;
  const shown = await gateway.admin(`GET`, `/requests/${row!.id}`);
  const { attempts: _, team: __, key: ___, ...columns } = shown;
  expect(row).toEqual(columns);
  const view = await eventually(async () => {
    const present = await get(id);
    return present.rows_sent === 2_510 && present.state === 'current' && present;
  });
  expect(view).toMatchObject({ state: 'current', last_error: null, failing_since: null });
  expect(JSON.stringify([view, await gateway.admin('GET', '/audit')])).not.toContain('canary');
});

it('sends the same messages again after an error, and then goes on', async () => {
  await insertCalls(gateway.database.url, 100);
  sink.behave = (_, res) => void res.writeHead(500).end('disk full');
  const { id } = await create();
  await eventually(() => sink.received.length >= 2);
  const failing = await until(id, 'failing');
  expect(failing.last_error).toBe(
    'The receiver responded with status 500. It must respond with a status from 200 to 299.',
  );
  sink.behave = (_, res) => void res.writeHead(200).end('ok');
  await until(id, 'current');
  expect(new Set(sink.received.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  expect(new Set(sink.received.map(({ body }) => body)).size).toBe(1);
  expect(sink.ids).toEqual(await logIds());
  expect((await get(id)).rows_sent).toBe(100);
});

it.each([
  [301, 'The receiver redirects (status 301). Use the final URL.'],
  [401, 'The receiver rejected the secret (status 401). Change the secret of the sink.'],
  [503, 'The receiver responded with status 503. It must respond with a status from 200 to 299.'],
])('shows nothing of a response with status %i but that, wherever the URL leads', async (status, message) => {
  await insertCalls(gateway.database.url, 1);
  sink.behave = (_, res) =>
    void res.writeHead(status, { location: 'http://canary/' }).end('canary '.repeat(20_000));
  const { id } = await create();
  expect((await until(id, 'failing')).last_error).toBe(message);
});

it('names a secret that no header may have', async () => {
  await insertCalls(gateway.database.url, 1);
  const { id } = await create({ secret: 'canary\nsecret' });
  expect((await until(id, 'failing')).last_error).toBe(
    'The secret has a character that no header may have. Change the secret of the sink.',
  );
});

it('sends a row that was updated again, also if that happens while its batch is being sent', async () => {
  await insertCalls(gateway.database.url, 50);
  sink.behave = (_, res) => void res.writeHead(503).end();
  const { id } = await create();
  await eventually(() => sink.received.length === 1);
  const [repaired] = await gateway.database.query<{ id: string }>(
    `UPDATE request_log SET cost_usd = 7, (recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) t)
     WHERE id = (SELECT min(id::text)::uuid FROM request_log) RETURNING id`,
  );
  sink.behave = (_, res) => void res.writeHead(204).end();
  const last = await eventually(() =>
    sink.rows.findLast((row) => row.id === repaired!.id && row.cost_usd === '7.000000000'),
  );
  expect(last.repaired_at).toBe(last.recorded_at);
  await until(id, 'current');
  expect(sink.ids).toEqual(await logIds());
});

it('moves nothing with a batch that is no longer the present one', async () => {
  await insertCalls(gateway.database.url, 20);
  let respond: () => void = () => {};
  sink.behave = (_, res) => void (respond = () => res.writeHead(204).end());
  const { id } = await create();
  await eventually(() => sink.received.length === 1);
  await gateway.admin('POST', `/sinks/${id}/replay`, { from: '2020-01-01T00:00:00Z' }).catch(() => {});
  await gateway.database.query(
    `UPDATE sink SET batch_token = NULL, batch_until = NULL, batch_until_id = NULL, batch_ends = NULL, batch_at = NULL`,
  );
  sink.behave = (_, res) => void res.writeHead(204).end();
  respond();
  await eventually(() => sink.received.length === 2);
  await eventually(async () => (await get(id)).rows_sent === 20);
  const keys = sink.received.map(({ headers }) => headers['idempotency-key']);
  expect(keys[0]).not.toBe(keys[1]);
});

it('starts at the given time, replays, pauses and resumes', async () => {
  await insertCalls(gateway.database.url, 30);
  const { id } = await create({ from: new Date(Date.now() + 60_000).toISOString() });
  await insertCalls(gateway.database.url, 5);
  await gateway.database.query(
    `UPDATE request_log SET recorded_at = recorded_at - interval '1 hour' WHERE id IN (SELECT id FROM request_log LIMIT 30)`,
  );
  expect(sink.received).toEqual([]);
  await gateway.admin('POST', `/sinks/${id}/replay`, {
    from: new Date(Date.now() - 7_200_000).toISOString(),
  });
  await eventually(() => sink.ids.length === 35);
  await gateway.admin('PATCH', `/sinks/${id}`, { enabled: false });
  await until(id, 'paused');
  const before = sink.received.length;
  await insertCalls(gateway.database.url, 5);
  // A sink that is created now gets what the paused one would.
  const other = await new FakeSink().listen();
  await until((await create({ url: other.url })).id, 'current');
  await insertCalls(gateway.database.url, 5);
  await eventually(() => other.ids.length === 45);
  await other.close();
  expect(sink.received).toHaveLength(before);
  await gateway.admin('PATCH', `/sinks/${id}`, { enabled: true });
  await eventually(() => sink.ids.length === 45);
  const actions = await gateway.admin<{ data: { action: string }[] }>('GET', '/audit?limit=5');
  expect(actions.data.map(({ action }) => action)).toEqual([
    'changed',
    'created',
    'changed',
    'replayed',
    'created',
  ]);
});

it('is led by one of several replicas, and by another one when that is gone', async () => {
  const other = await startTestGateway({ MASTER_KEY }, gateway.database);
  const { id } = await create();
  const untilSent = (rows: number) => eventually(async () => (await get(id)).rows_sent === rows);
  await insertCalls(gateway.database.url, 1_000);
  await untilSent(1_000);
  const leaders = () =>
    gateway.database.query<{ pid: number }>(
      `SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
       WHERE l.locktype = 'advisory' AND l.classid = 7061006 AND l.granted AND d.datname = current_database()`,
    );
  const [first] = await eventually(async () => {
    const found = await leaders();
    return found.length === 1 && found;
  });
  await gateway.database.query('SELECT pg_terminate_backend($1)', [first!.pid]);
  await insertCalls(gateway.database.url, 1_000);
  await untilSent(2_000);
  expect((await leaders()).map(({ pid }) => pid)).not.toContain(first!.pid);
  await other.stop();
  await insertCalls(gateway.database.url, 10);
  await untilSent(2_010);
  expect(sink.rows).toHaveLength(2_010);
});

it.each([
  [{ kind: 'kafka' }, 'kind: must be clickhouse, jetstream or http'],
  [{ name: 'Rows!' }, 'name: must be 1 to 63 lower-case letters'],
  [{ url: 'http://169.254.169.254/' }, 'url: must not point to a link-local'],
  [{ url: 'http://203.0.113.9/' }, 'url: must use https:// for a public address'],
  [
    { url: 'https://user:pw@rows.example.com/' },
    'url: must not contain a user name or password; give them as the secret',
  ],
  [{ target: 'table' }, 'target: must be left out for http'],
  [
    { kind: 'clickhouse', url: 'https://ch.example.com/db', target: 't' },
    'url: must be an origin without a path',
  ],
  [
    { kind: 'clickhouse', url: 'https://ch.example.com', target: 't; DROP TABLE x' },
    'target: must be the name of a table',
  ],
  [{ kind: 'jetstream', url: 'nats://10.0.0.1', target: 'a' }, 'url: must name the port'],
  [
    { kind: 'jetstream', url: 'https://10.0.0.1:4222', target: 'a' },
    'url: must be a well-formed URL that starts with tls://',
  ],
  [
    { kind: 'jetstream', url: 'nats://10.0.0.1:4222', target: 'a.*' },
    'target: must be a subject of a stream without wildcards',
  ],
  [{ from: 'yesterday' }, 'from: must be an ISO 8601 time'],
])('rejects %j and names the remedy', async (members, message) => {
  await expect(create({ url: 'http://127.0.0.1:9/', ...members })).rejects.toThrow(message);
});

it('requires the secret again for another host, so that the stored one is never sent elsewhere', async () => {
  const other = await new FakeSink().listen();
  const { id } = await create({ secret: 'canary' });
  const change = (members: object) => gateway.admin<SinkView>('PATCH', `/sinks/${id}`, members);
  await expect(change({ url: `${other.url}/rows` })).rejects.toThrow('secret: must be sent again');
  await change({ url: `${sink.url}/other-path` });
  await change({ url: `${other.url}/rows`, secret: 'another' });
  await change({ url: `${sink.url}/rows`, secret: null });
  // Without a secret, there is none to be sent elsewhere.
  await change({ url: `${other.url}/rows` });
  await insertCalls(gateway.database.url, 5);
  await eventually(() => other.ids.length === 5);
  expect(other.received.map(({ headers }) => headers.authorization)).not.toContain('Bearer canary');
  await other.close();
});

it('says that a replay has no effect where no row was sent yet', async () => {
  await insertCalls(gateway.database.url, 1);
  sink.behave = (_, res) => void res.writeHead(500).end();
  const { id } = await create();
  await expect(
    gateway.admin('POST', `/sinks/${id}/replay`, { from: '2020-01-01T00:00:00Z' }),
  ).rejects.toThrow('no row was sent yet');
});

it('rejects a name that is taken, an unknown sink, and a replay of what is not sent yet', async () => {
  const { id, name } = await create({ from: '2020-01-01T00:00:00Z' });
  await expect(create({ name })).rejects.toThrow('409');
  await expect(get('nothing')).rejects.toThrow('no sink has this name or id');
  await expect(
    gateway.admin('POST', `/sinks/${id}/replay`, { from: new Date(Date.now() + 3_600_000).toISOString() }),
  ).rejects.toThrow('must be earlier than');
  const response = await fetch(`${gateway.url}/admin/v1/sinks/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'if-match': '"other"' },
  });
  expect(response.status).toBe(409);
});

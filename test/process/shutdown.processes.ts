import { connect } from 'node:net';
import type { TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import type { GatewayProcess } from '../support/process.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, type Script, STREAM_HEAD } from '../support/raw-provider.js';
import { send, Site } from '../support/site.js';

let site: Site;
let database: TestDatabase;
let provider: RawProvider;
let gateway: GatewayProcess;
let url: string;
let key: string;

beforeEach(async () => {
  site = await Site.make({ script: () => {} });
  ({ database, provider } = site);
});
afterEach(() => site.remove());

async function start(settings: Record<string, string>, script: Script): Promise<void> {
  provider.script = script;
  gateway = site.gateway(settings);
  url = await gateway.ready();
  key = await gateway.firstKey();
}

const port = () => Number(new URL(url).port);
const call = () => send(url, key, [], '{"stream":true}');

async function sigterm(): Promise<void> {
  gateway.process.signal('SIGTERM');
  await gateway.process.until(/stopping: waiting for calls in flight/);
}

const isRefused = () =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port(), '127.0.0.1');
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });

interface Row {
  outcome: string;
  status: number | null;
  error_code: string | null;
  response_bytes: string;
}
const rows = () =>
  database.query<Row>('SELECT outcome, status, error_code, response_bytes FROM request_log ORDER BY id');

it('serves on during the delay, then takes no new connection and lets a streamed call end whole', async () => {
  const goOn = deferred();
  await start({ SHUTDOWN_DELAY_MS: '10000', SHUTDOWN_GRACE_MS: '20000' }, async ({ body, socket }) => {
    await body;
    if (provider.requests.length > 1) return void socket.write(answer('200 OK', [], 'ok'));
    socket.write(STREAM_HEAD + chunk('data: 1\n\n').toString());
    await goOn.promise;
    socket.write(Buffer.concat([chunk('data: 2\n\n'), Buffer.from(LAST_CHUNK)]));
  });
  const idle = await RawClient.connect(port());
  idle.send(request('GET /health/live', []));
  await idle.answer();
  const client = await call();
  const head = await client.head();
  await client.reader.take(chunk('data: 1\n\n').length);

  await sigterm();
  // The delay: connections end with their next response, while ready says 503.
  const ready = await fetch(`${url}/health/ready`);
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { status: 'unavailable', reasons: expect.arrayContaining(['shutting down']) as string[] },
  ]);
  const reply = await (await call()).answer();
  expect([reply.status, reply.header('connection'), reply.body.toString()]).toEqual([200, 'close', 'ok']);

  await eventually(isRefused);
  await idle.closed;
  goOn.resolve();
  const rest = await client.reader.body(head.headers);
  expect(rest.bytes.toString()).toBe('data: 2\n\n');
  expect(await gateway.process.ended).toEqual({ code: 0, signal: null });
  expect(await rows()).toEqual([
    { outcome: 'completed', status: 200, error_code: null, response_bytes: String(2 * 'data: 1\n\n'.length) },
    { outcome: 'completed', status: 200, error_code: null, response_bytes: '2' },
  ]);
});

it('cuts what outlasts the grace, visibly, and records it as interrupted', async () => {
  await start({ SHUTDOWN_GRACE_MS: '50' }, async ({ body, socket }) => {
    await body;
    // The first call is answered in part, the second not at all.
    if (provider.requests.length === 1) socket.write(STREAM_HEAD + chunk('data: 1\n\n').toString());
  });
  const streaming = await call();
  await streaming.head();
  await streaming.reader.take(chunk('data: 1\n\n').length);
  const waiting = await call();
  await eventually(() => provider.requests.length === 2);
  await Promise.all(provider.requests.map(({ body }) => body));

  await sigterm();
  await Promise.all([streaming.closed, waiting.closed]);
  expect(streaming.reader.rest.toString()).toBe('');
  expect(waiting.reader.rest.toString()).toBe('');
  await Promise.all(provider.requests.map(({ closed }) => closed));
  expect(await gateway.process.ended).toEqual({ code: 0, signal: null });
  expect(await rows()).toMatchObject([
    { outcome: 'interrupted', status: 200 },
    { outcome: 'interrupted', status: null },
  ]);
});

it('takes what arrives together for one signal: npm passes on a Ctrl-C that the terminal sends to the gateway too', async () => {
  await start({}, () => {});
  gateway.process.signal('SIGSTOP');
  gateway.process.signal('SIGINT');
  gateway.process.signal('SIGHUP');
  gateway.process.signal('SIGCONT');
  expect(await gateway.process.ended).toEqual({ code: 0, signal: null });
});

it('exits at once on a second signal; the next start records the call it cut', async () => {
  await start({ SHUTDOWN_GRACE_MS: '3600000' }, () => {});
  const client = await call();
  await eventually(() => provider.requests.length === 1);
  await sigterm();
  gateway.process.signal('SIGTERM');
  expect(await gateway.process.ended).toEqual({ code: 1, signal: null });
  await client.closed;

  const next = site.gateway();
  await next.ready();
  await eventually(async () => (await rows()).length === 1);
  expect(await rows()).toMatchObject([{ outcome: 'interrupted', status: null }]);
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});

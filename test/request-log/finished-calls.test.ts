import { Logger } from '@nestjs/common';
import { generateKey } from '../../src/keys/key-secret.js';
import { type FinishedCall, FinishedCalls } from '../../src/request-log/finished-calls.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let provider: RawProvider;
let postern: TestGateway;
let key: string;
let told: FinishedCall[];
let lines: string[];
beforeEach(async () => {
  provider = await RawProvider.start(async ({ head, body, socket }) => {
    await body.catch(() => {});
    if (head.includes('x-break')) socket.destroy();
    else if (head.includes('x-cut')) socket.end(STREAM_HEAD + String(chunk('data: 1\n\n')));
    else if (!head.includes('x-hang'))
      socket.write(answer('200 OK', ['Content-Type: application/json'], '{"model":"answering-model"}'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, SHUTDOWN_GRACE_MS: '200' });
  key = await postern.createKey({ endpoints: 'all', idempotency: 'replay' });
  told = [];
  lines = [];
  const keep = (message: unknown) => void lines.push(String(message));
  Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
});
afterEach(async () => {
  await provider.stop();
});

const listen = (name: string, listener: (call: FinishedCall) => unknown) =>
  postern.gateway.app.get(FinishedCalls).listen(name, listener);

async function send(headers: string[]): Promise<RawClient> {
  const client = await RawClient.connect(postern.port);
  const model = '{"model":"asked-model"}';
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`, ...headers], model));
  return client;
}

async function call(headers: string[] = []): Promise<void> {
  const client = await send(headers);
  await client.answer().catch(() => {});
  client.destroy();
}

it('tells every call that has a row, once, with the facts of that row', async () => {
  listen('test', (finished) => told.push(finished));
  await call([`traceparent: ${TRACEPARENT}`, 'tracestate: a=b']);
  await call(['x-break: 1']);
  await call(['x-cut: 1']);
  await call(['Idempotency-Key: one']);
  await call(['Idempotency-Key: one']);
  const leaving = await send(['x-hang: 1']);
  await eventually(() => provider.requests.length === 5);
  leaving.destroy();
  await eventually(() => told.length === 6);
  const rejected = await RawClient.connect(postern.port);
  rejected.send(request('POST /v1/chat/completions', [], '{}'));
  expect((await rejected.answer()).status).toBe(401);
  rejected.destroy();
  // One that the shutdown cuts.
  const cut = await send(['x-hang: 1']);
  await eventually(() => provider.requests.length === 6);
  await postern.gateway.stop();
  cut.destroy();

  const rows = await postern.database.query<{ id: string; outcome: string }>(
    'SELECT id, outcome, model FROM request_log ORDER BY id',
  );
  expect(told.map(({ row: { id, outcome, model } }) => ({ id, outcome, model }))).toEqual(rows);
  expect(rows.map(({ outcome }) => outcome)).toEqual([
    'completed',
    'upstream_error',
    'truncated',
    'completed',
    'replayed',
    'client_aborted',
    'interrupted',
  ]);
  expect(told[0]).toMatchObject({
    requestModel: 'asked-model',
    responseModel: 'answering-model',
    upstream: provider.url,
    traceparent: TRACEPARENT,
    tracestate: 'a=b',
  });
  for (const { row, overheadMs } of told) {
    if (row.outcome === 'replayed') expect(overheadMs).toBeNull();
    else expect(overheadMs).toBeGreaterThan(0);
  }
  expect(JSON.stringify(told)).not.toContain(key);
  await postern.database.drop();
});

never('hands on no trace context that holds a key, the caller’s own or another', async () => {
  listen('test', (finished) => told.push(finished));
  for (const held of [key, generateKey()]) {
    await call([`traceparent: ${TRACEPARENT}-${held}`, `tracestate: vendor=${held}`]);
  }
  await eventually(() => told.length === 2);
  expect(told).toMatchObject(Array(2).fill({ traceparent: null, tracestate: null }));
  await postern.stop();
});

it('is not harmed by listeners that throw, nor are the others, and says so once', async () => {
  listen('throwing', () => {
    throw new Error('boom');
  });
  listen('rejecting', () => Promise.reject(new Error('late boom')));
  listen('test', (finished) => told.push(finished));
  for (let i = 0; i < 3; i++) await call();
  await eventually(() => told.length === 3);
  for (const { row } of told) expect((await postern.row(row.id)).outcome).toBe('completed');
  expect(lines).toEqual([
    'The listener "throwing" failed (logged once a minute): Error: boom',
    'The listener "rejecting" failed (logged once a minute): Error: late boom',
  ]);
  await postern.stop();
});

import { generateKey } from '../../src/keys/key-secret.js';
import { GATEWAY_ERROR_CODES } from '../../src/errors/gateway-error.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Scrape } from './scrape.js';

const USAGE = '{"usage":{"prompt_tokens":7,"completion_tokens":3}}';

let provider: RawProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ head, body, socket }) => {
    await body.catch(() => {});
    if (head.includes('x-break')) socket.destroy();
    else if (head.includes('x-limit')) socket.write(answer('429 Too Many Requests', [], 'slow down'));
    else socket.write(answer('200 OK', ['Content-Type: application/json'], USAGE));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const scrape = () => Scrape.of(postern.url);

async function call(headers: string[], key = postern.key): Promise<number> {
  const client = await RawClient.connect(postern.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`, ...headers], '{}'));
  const { status } = await client.answer();
  client.destroy();
  return status;
}

/** A scrape that knows of so many finished calls: a call is counted a moment after its answer is out. */
const after = (calls: number) =>
  eventually(async () => {
    const seen = await scrape();
    return seen.sum('postern_calls_total') === calls && seen;
  });

it('counts each call once, by provider, class of status and outcome, and rejections by code', async () => {
  // Not the first key, which may have been read in advance.
  const key = await postern.createKey();
  expect(await call([], key)).toBe(200);
  expect(await call([], key)).toBe(200);
  expect(await call(['x-limit: 1'], key)).toBe(429);
  expect(await call(['x-break: 1'], key)).toBe(502);
  expect(await call([], generateKey())).toBe(401);
  const seen = await after(4);
  const calls = (status: string, outcome: string) =>
    seen.sum('postern_calls_total', { provider: 'default', status, outcome });
  expect(calls('2xx', 'completed')).toBe(2);
  expect(calls('4xx', 'completed')).toBe(1);
  expect(calls('5xx', 'upstream_error')).toBe(1);
  expect(seen.sum('postern_refusals_total', { code: 'invalid_api_key' })).toBe(1);
  expect(seen.sum('postern_refusals_total', { code: 'upstream_invalid_response' })).toBe(1);
  expect(seen.sum('postern_tokens_total', { kind: 'prompt' })).toBe(14);
  expect(seen.sum('postern_tokens_total', { kind: 'completion' })).toBe(6);
  for (const name of ['overhead', 'duration']) {
    expect([name, seen.sum(`postern_call_${name}_seconds_count`)]).toEqual([name, 4]);
    expect(seen.sum(`postern_call_${name}_seconds_bucket`, { le: '+Inf' })).toBe(4);
    expect(seen.sum(`postern_call_${name}_seconds_sum`)).toBeGreaterThan(0);
  }
  expect(seen.sum('postern_call_first_byte_seconds_count')).toBe(3);
  // One that was kept for seconds, which calls may take on a busy machine, is looked up again.
  const lookups = (result: string) => seen.sum('postern_key_cache_lookups_total', { result });
  expect(lookups('hit') + lookups('miss')).toBe(5);
  expect(lookups('hit')).toBeGreaterThan(0);
  expect(lookups('miss')).toBeGreaterThan(1);
  expect(seen.sum('postern_log_rows_enqueued_total')).toBe(4);
  await eventually(async () => (await scrape()).sum('postern_log_rows_persisted_total') === 4);
});

it('names everything by the rules of Prometheus, and has every code from the start', async () => {
  const { types, own, text } = await scrape();
  for (const [name, type] of types) {
    if (!name.startsWith('postern_')) continue;
    expect([name, /_total$/.test(name)]).toEqual([name, type === 'counter']);
    expect(name).not.toMatch(/_(ms|millis|milliseconds|mb|kb)(_|$)/);
  }
  const codes = own.filter((series) => series.startsWith('postern_refusals_total'));
  expect(codes).toEqual(GATEWAY_ERROR_CODES.map((code) => `postern_refusals_total{code="${code}"}`).sort());
  for (const name of [
    'nodejs_eventloop_lag_seconds',
    'process_cpu_seconds_total',
    'nodejs_gc_duration_seconds',
  ]) {
    expect(text).toContain(`# TYPE ${name} `);
  }
  expect(new Set(own.map((series) => series.split('{')[0])).size).toBeGreaterThan(25);
});

it('tells what waits and what is open', async () => {
  const held: (() => void)[] = [];
  const { script } = provider;
  provider.script = async (req) => {
    await req.body;
    held.push(() => req.socket.write(answer('200 OK', [], 'late')));
  };
  const running = [call([]), call([])];
  await eventually(() => held.length === 2);
  const seen = await scrape();
  expect(seen.sum('postern_open_calls')).toBe(2);
  // The scrape is a request too.
  expect(seen.sum('postern_open_requests')).toBe(3);
  expect(seen.sum('postern_upstream_connections', { state: 'busy' })).toBe(2);
  expect(seen.sum('postern_journal_accepting')).toBe(1);
  expect(seen.sum('postern_journal_bytes')).toBeGreaterThan(0);
  expect(seen.sum('postern_database_ready')).toBe(1);
  expect(seen.sum('postern_database_connections')).toBeGreaterThan(0);
  for (const release of held) release();
  expect(await Promise.all(running)).toEqual([200, 200]);
  provider.script = script;
  await eventually(async () => (await scrape()).sum('postern_open_calls') === 0);
});

it('counts the first call under an Idempotency-Key as a claim, and a repeat as replayed', async () => {
  const key = await postern.createKey({ idempotency: 'replay' });
  expect(await call(['Idempotency-Key: one'], key)).toBe(200);
  expect(await call(['Idempotency-Key: one'], key)).toBe(200);
  const seen = await after(8);
  expect(seen.sum('postern_idempotency_claims_total')).toBe(1);
  expect(seen.sum('postern_calls_total', { outcome: 'replayed' })).toBe(1);
  // A replay is handed to nobody.
  expect(seen.sum('postern_call_overhead_seconds_count')).toBe(7);
  expect(seen.sum('postern_idempotency_stored_bytes')).toBeGreaterThan(0);
});

it('opens to the admin token alone', async () => {
  for (const token of [postern.key, 'wrong', '']) {
    const response = await fetch(`${postern.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(401);
    expect(await response.text()).not.toContain('postern_');
  }
});

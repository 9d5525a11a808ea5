import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { LRUCache } from 'lru-cache';
import { CacheBatches } from '../../src/idempotency/cache-batches.js';
import { cacheId, CachedResponses } from '../../src/idempotency/cached-responses.service.js';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { ResponseCipher } from '../../src/idempotency/response-cipher.js';
import type { StoredResponse } from '../../src/idempotency/stored-response.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
let replica: TestGateway;
let key: string;
let calls = 0;
let padding = '';
let headers: string[] = [];
/** Replicas decrypt what others have stored. */
const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');
const asReplica = () =>
  startTestGateway({ PROVIDER_URL: wire.provider.url, MASTER_KEY }, wire.gateway.database);
beforeAll(async () => {
  wire = await Wire.start({ MASTER_KEY }, async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', headers, `response ${++calls}${padding}`));
  });
  key = await wire.gateway.createKey({ cache: { ttl_seconds: 600 } });
  replica = await asReplica();
});
afterEach(() => {
  jest.restoreAllMocks();
  padding = '';
  headers = [];
});
afterAll(async () => {
  await replica.stop();
  await wire.stop();
});

const fresh = () => `{"model":"m","messages":[],"id":"${randomUUID()}"}`;
const query = (sql: string) => wire.gateway.database.query(sql);

async function send(
  body: string,
  headers: string[] = [],
  { port } = wire.gateway,
): Promise<ReceivedResponse> {
  const client = await RawClient.connect(port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`, ...headers], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}
/** The stored response of this request; null if there is none. */
async function stored(body: string, gateway = wire.gateway): Promise<string | null> {
  const reply = await send(body, ['x-gateway-cache: only-if-cached'], gateway);
  return reply.header('x-gateway-cache') === 'hit' ? reply.body.toString() : null;
}
/** Calls with this request until the response is stored. @returns the response */
async function store(body: string): Promise<string> {
  const reply = await send(body);
  await eventually(async () => (await stored(body)) !== null);
  return reply.body.toString();
}

it('looks up and stores the responses of many calls in one statement, each for its own request', async () => {
  const { app } = wire.gateway.gateway;
  const [records, batches] = [app.get(IdempotencyRecords), app.get(CacheBatches)];
  const [findCached, storeCached] = [records.findCached.bind(records), records.storeCached.bind(records)];
  const gates = [0, 1].map(() => {
    let open!: () => void;
    return { opened: new Promise<void>((resolve) => (open = resolve)), open };
  });
  const lookUps = jest.spyOn(records, 'findCached').mockImplementation(async (wanted) => {
    await gates[0]!.opened;
    return findCached(wanted);
  });
  const stores = jest.spyOn(records, 'storeCached').mockImplementation(async (entries) => {
    await gates[1]!.opened;
    return storeCached(entries);
  });
  const [lookedUp, toStore] = [jest.spyOn(batches, 'find'), jest.spyOn(batches, 'store')];
  const bodies = Array.from({ length: 20 }, fresh);
  const twice = bodies.slice(0, 3);
  const replies = [...bodies, ...twice].map((body) => send(body));
  await eventually(() => lookedUp.mock.calls.length === 23);
  // Those that came first are looked up, and all others wait for them.
  gates[0]!.open();
  const responses = (await Promise.all(replies)).map(({ body }) => body.toString());
  expect(new Set(responses).size).toBe(23);
  // One if all have come in the same turn of the event loop.
  expect(lookUps.mock.calls.length).toBeLessThanOrEqual(2);
  await eventually(() => toStore.mock.calls.length === 23);
  gates[1]!.open();
  await Promise.all(toStore.mock.results.map(({ value }) => value as Promise<void>));
  expect(stores.mock.calls.length).toBeLessThanOrEqual(2);
  const hits = await Promise.all(bodies.map((body) => stored(body)));
  // Of two with the same request, the last one is stored.
  for (const [i, hit] of hits.entries())
    expect(i < twice.length ? [responses[i], responses[20 + i]] : [responses[i]]).toContain(hit);
});

it('neither reads nor decrypts again what was sent lately', async () => {
  const body = fresh();
  const response = await store(body);
  await query("UPDATE idempotency_record SET answer = '\\x00'");
  expect(await stored(body)).toBe(response);
  wire.gateway.gateway.app.get(CachedResponses).forgetRecent();
  expect(await stored(body)).toBeNull();
});

it('keeps what was sent for no longer than it says, counts its head, and holds no memory besides', async () => {
  const recent = Reflect.get(wire.gateway.gateway.app.get(CachedResponses), 'recent') as LRUCache<
    string,
    { response: StoredResponse }
  >;
  recent.clear();
  headers = [`Content-Security-Policy: ${'x'.repeat(8_000)}`];
  const large = fresh();
  await store(large);
  expect(recent.calculatedSize).toBeGreaterThan(8_000);
  headers = [];
  const small = fresh();
  const response = await store(small);
  const held = [...recent.values()].map(({ response: { body } }) => body.buffer.byteLength);
  expect(held).toEqual([response.length, expect.any(Number)]);
  const { ttl } = recent;
  recent.clear();
  recent.ttl = 20;
  await stored(small);
  await eventually(() => recent.size === 0);
  recent.ttl = ttl;
});

it('never sends what another replica has replaced, what was deleted, or what has expired', async () => {
  const body = fresh();
  const first = await store(body);
  expect(await stored(body)).toBe(first);
  const second = (await send(body, ['x-gateway-cache: no-cache'], replica)).body.toString();
  await eventually(async () => (await stored(body, replica)) === second);
  expect(await stored(body)).toBe(second);
  // Each gateway deletes once a minute what has expired.
  for (const { app } of [wire.gateway.gateway, replica.gateway])
    jest.spyOn(app.get(IdempotencyRecords), 'sweep').mockResolvedValue(0);
  await query("UPDATE idempotency_record SET expires_at = now() - interval '1 s'");
  expect(await stored(body)).toBeNull();
  await query("UPDATE idempotency_record SET expires_at = now() + interval '1 h'");
  expect(await stored(body)).toBe(second);
  await query('DELETE FROM idempotency_record');
  expect(await stored(body)).toBeNull();
});

it('sends a response that is too large for a look-up, also from another replica', async () => {
  padding = 'x'.repeat(100_000);
  const body = fresh();
  const response = await store(body);
  expect(response.length).toBeGreaterThan(100_000);
  expect([await stored(body), await stored(body, replica)]).toEqual([response, response]);
});

it('stores at once what is large, also right after another', async () => {
  const batches = wire.gateway.gateway.app.get(CacheBatches);
  const storeLarge = () =>
    batches.store({
      ...{ id: randomBytes(32), callId: randomUUID(), keyId: randomUUID(), ttlSeconds: 60 },
      bytes: 4 * 1024 * 1024,
      seal: () => Buffer.alloc(4 * 1024 * 1024),
    });
  await storeLarge().then(storeLarge);
});

it('stores all others if one response cannot be encrypted', async () => {
  const { app } = wire.gateway.gateway;
  const cipher = app.get(ResponseCipher);
  const seal = cipher.seal.bind(cipher);
  const [records, batches] = [app.get(IdempotencyRecords), app.get(CacheBatches)];
  const storeCached = records.storeCached.bind(records);
  const gate = deferred();
  const stores = jest.spyOn(records, 'storeCached').mockImplementation(async (entries) => {
    await gate.promise;
    return storeCached(entries);
  });
  // What comes during its statement waits for the next one.
  await send(fresh());
  await eventually(() => stores.mock.calls.length === 1);
  const failing = `response ${calls + 1}`;
  jest.spyOn(cipher, 'seal').mockImplementation((holder, response) => {
    if (response.body.toString() === failing) throw new Error('no memory left');
    return seal(holder, response);
  });
  const toStore = jest.spyOn(batches, 'store');
  const bodies = [fresh(), fresh()];
  const responses = await Promise.all(bodies.map(async (body) => (await send(body)).body.toString()));
  await eventually(() => toStore.mock.calls.length === 2);
  gate.resolve();
  const [first, second] = toStore.mock.results.map(({ value }) => value as Promise<void>);
  expect(second).toBe(first);
  await first;
  // An error also pauses the look-ups.
  Reflect.set(app.get(CachedResponses), 'pausedUntil', -Infinity);
  const hits = await Promise.all(bodies.map((body) => stored(body)));
  expect(responses).toContain(failing);
  expect(hits).toEqual(responses.map((response) => (response === failing ? null : response)));
});

never('identifies a request by all of its bytes, whether they are hashed at once or not', () => {
  const hashed = [1_000, 100_000].map((bytes) => {
    const body = Buffer.alloc(bytes, 'x');
    const whole = Buffer.concat([Buffer.from(`response cache 2\x002\0é\0${bytes}\0`), body]);
    return [cacheId(['é', body]), createHash('sha256').update(whole).digest()];
  });
  for (const [id, expected] of hashed) expect(id).toEqual(expected);
});

it('stores what waits for others before the process stops', async () => {
  const stopping = await asReplica();
  const batches = stopping.gateway.app.get(CacheBatches);
  const store = batches.store.bind(batches);
  const toStore = jest.spyOn(batches, 'store').mockImplementation((entry) => {
    const stored = store(entry);
    // Only the stop ends its wait.
    clearTimeout(Reflect.get(batches, 'timer') as NodeJS.Timeout);
    return stored;
  });
  const body = fresh();
  const response = (await send(body, [], stopping)).body.toString();
  await eventually(() => toStore.mock.calls.length === 1);
  await stopping.stop();
  expect(await stored(body)).toBe(response);
});

it('forwards all calls that wait for a look-up if it fails, and does not look up for a while', async () => {
  const { app } = wire.gateway.gateway;
  const lookUps = jest.spyOn(app.get(IdempotencyRecords), 'findCached');
  lookUps.mockRejectedValue(new Error('the database is gone'));
  const replies = await Promise.all([fresh(), fresh(), fresh()].map((body) => send(body)));
  const { length } = lookUps.mock.calls;
  // Makes the pause longer than this test.
  const cached = app.get<unknown, { pausedUntil: number }>(CachedResponses);
  cached.pausedUntil += 600_000;
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await send(fresh())).status).toBe(200);
  expect(lookUps.mock.calls).toHaveLength(length);
  cached.pausedUntil = -Infinity;
});

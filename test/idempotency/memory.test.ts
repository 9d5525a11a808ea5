import { Logger } from '@nestjs/common';
import { ResponseMemory } from '../../src/idempotency/response-memory.js';
import { MetricsService } from '../../src/observability/metrics.service.js';
import { FairShares } from '../../src/idempotency/fair-shares.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import type { RawClient } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

const MIB = 1024 * 1024;
const large = Buffer.alloc(8 * MIB, 'l');

let wire: Wire;
let memory: ResponseMemory;
let body: Buffer | string;
const unread: RawClient[] = [];
beforeAll(async () => {
  wire = await Wire.start({}, async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], body));
  });
  memory = wire.gateway.gateway.app.get(ResponseMemory);
  await wire.gateway.admin('POST', '/teams', { name: 'others' });
});
beforeEach(() => {
  body = 'small';
});
afterEach(async () => {
  for (const client of unread.splice(0)) client.destroy();
  for (const shares of [memory.copies, memory.replays])
    await eventually(() => Reflect.get(shares, 'used') === 0);
});
afterAll(() => wire.stop());

const keyOf = async (team: string, more: object = { idempotency: 'replay' }) =>
  `Authorization: Bearer ${await wire.gateway.createKey({ team, ...more })}`;
/** A call whose client does not read beyond the head. */
async function callUnread(headers: string[]): Promise<number> {
  const client = await open(wire.gateway, headers);
  const { status } = await client.head();
  client.socket.pause();
  unread.push(client);
  return status;
}
const isOnce = async (headers: string[]) => {
  const before = wire.provider.requests.length;
  await once(wire.gateway, headers);
  const again = await once(wire.gateway, headers);
  return again.header('idempotent-replayed') === 'true' && wire.provider.requests.length === before + 1;
};

it('a key whose clients do not read replays leaves other keys their exactly-once', async () => {
  const [hog, sibling, other] = [await keyOf('default'), await keyOf('default'), await keyOf('others')];
  body = large;
  await once(wire.gateway, [hog, 'Idempotency-Key: hog']);
  const statuses = [];
  for (let i = 0; i < 32; i++) statuses.push(await callUnread([hog, 'Idempotency-Key: hog']));
  expect(statuses).toContain(200);
  expect(statuses.at(-1)).toBe(503);
  for (const headers of [
    [sibling, 'Idempotency-Key: sibling'],
    [other, 'Idempotency-Key: other'],
  ])
    expect(await isOnce(headers)).toBe(true);
  // Replays do not take the memory of its own new calls either.
  body = 'small';
  expect(await isOnce([hog, 'Idempotency-Key: new'])).toBe(true);
});

it('a key without memory to store a response gets 503 before its call is forwarded, and still its replays', async () => {
  const [hog, other] = [await keyOf('default'), await keyOf('others')];
  await once(wire.gateway, [hog, 'Idempotency-Key: stored']);
  body = large;
  let status = 200;
  for (let i = 0; status === 200; i++) status = await callUnread([hog, `Idempotency-Key: unread-${i}`]);
  const before = wire.provider.requests.length;
  const rejected = await once(wire.gateway, [hog, 'Idempotency-Key: beyond']);
  wire.expectRejection(rejected, 503, 'overloaded');
  expect(rejected.header('retry-after')).toBe('1');
  expect(rejected.body.toString()).toContain('Idempotency-Key, so it was not forwarded');
  expect(wire.provider.requests).toHaveLength(before);
  expect((await once(wire.gateway, [hog, 'Idempotency-Key: stored'])).header('idempotent-replayed')).toBe(
    'true',
  );
  // Without the header, there is nothing to store.
  body = 'small';
  expect((await once(wire.gateway, [hog])).status).toBe(200);
  expect(await isOnce([other, 'Idempotency-Key: other'])).toBe(true);
  for (const client of unread.splice(0)) client.destroy();
  await eventually(async () => (await once(wire.gateway, [hog, 'Idempotency-Key: beyond'])).status === 200);
});

it('a response that is not stored for lack of memory says so, in a header, a metric and one line of the log', async () => {
  const lines: string[] = [];
  const keep = (message: unknown) => void lines.push(String(message));
  Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
  const cached = await keyOf('default', { cache: { ttl_seconds: 600 } });
  const replaying = await keyOf('default');
  const full = jest.spyOn(memory.copies, 'reserve').mockReturnValue(false);
  for (let i = 0; i < 2; i++) {
    expect((await once(wire.gateway, [cached])).header('x-gateway-cache')).toBe('not-stored');
    const reply = await once(wire.gateway, [replaying, 'Idempotency-Key: full']);
    expect([reply.status, reply.header('idempotency-stored')]).toEqual([200, 'false']);
  }
  full.mockRestore();
  expect((await once(wire.gateway, [cached])).header('x-gateway-cache')).toBeUndefined();
  const told = lines.filter((line) => line.includes('was not stored'));
  expect(told.map((line) => /\((\w+)\)/.exec(line)?.[1])).toEqual(['cache', 'idempotency']);
  const metrics = await wire.gateway.gateway.app.get(MetricsService).text();
  for (const store of ['cache', 'idempotency'])
    expect(metrics).toContain(`postern_response_store_failures_total{store="${store}",reason="memory"} 2`);
});

never(
  'shares: one key gets a third, one team half, and the more take part, the more is left for others',
  () => {
    const shares = new FairShares(1_200);
    const take = (keyId: string, teamId: string) => {
      let taken = 0;
      while (shares.reserve({ keyId, teamId }, 1)) taken++;
      return taken;
    };
    expect(take('a1', 'a')).toBe(400);
    for (let i = 2; i < 20; i++) take(`a${i}`, 'a');
    expect(Reflect.get(shares, 'used')).toBeLessThanOrEqual(600);
    expect(take('b1', 'b')).toBeGreaterThanOrEqual(200);
    for (let i = 2; i < 20; i++) take(`b${i}`, 'b');
    expect(take('c1', 'c')).toBeGreaterThanOrEqual(100);
    expect(shares.reserve({ keyId: 'd1', teamId: 'd' }, 1_200)).toBe(false);
  },
);

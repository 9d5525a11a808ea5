import { randomBytes, randomUUID } from 'node:crypto';
import { ResponseCipher } from '../../src/idempotency/response-cipher.js';
import { ClaimStore } from '../../src/idempotency/claim-store.service.js';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { StoredBytes } from '../../src/idempotency/stored-bytes.service.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { noticed } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

let wire: Wire;
let auth: string;
let records: IdempotencyRecords;
let claims: ClaimStore;
beforeAll(async () => {
  wire = await Wire.start();
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
  records = wire.gateway.gateway.app.get(IdempotencyRecords);
  claims = wire.gateway.gateway.app.get(ClaimStore);
});
afterAll(() => wire.stop());
afterEach(() => jest.restoreAllMocks());

const query = (sql: string) => wire.gateway.database.query<Record<string, unknown>>(sql);
const holder = (id = randomBytes(32)) => ({ id, callId: randomUUID() });
const claim = (of: ReturnType<typeof holder>) => records.claim(of, randomUUID());

never('who has lost a claim can neither store nor end nor keep that of the next', async () => {
  const old = holder();
  expect(await claim(old)).toBe(true);
  await query("UPDATE idempotency_record SET expires_at = now(), lease_until = now() + interval '1 hour'");
  const next = holder(old.id);
  // What has expired and runs still does not give way.
  expect(await claim(next)).toBe(false);
  await query('UPDATE idempotency_record SET lease_until = now()');
  expect(await claim(next)).toBe(true);
  const before = await query('SELECT * FROM idempotency_record');
  expect(await records.store(old, Buffer.from('old'))).toBe(false);
  await records.release([old]);
  await records.abandon([old]);
  await records.renew([old]);
  expect(await query('SELECT * FROM idempotency_record')).toEqual(before);
  expect(await records.store(next, Buffer.from('next'))).toBe(true);
  await records.release([next]);
  expect((await records.read(next.id))?.response.toString()).toBe('next');
});

it.each(['when it failed', 'only later'])(
  'a claim that Postgres took although it failed is undone: %s',
  async (when) => {
    const late = deferred();
    const take = records.claim.bind(records);
    let taken: Promise<unknown> = Promise.resolve();
    jest.spyOn(records, 'claim').mockImplementationOnce(async (of, keyId) => {
      if (when === 'when it failed') await take(of, keyId);
      else taken = late.promise.then(() => take(of, keyId));
      throw new Error('lost');
    });
    const headers = [auth, `Idempotency-Key: lost-${when.replaceAll(' ', '-')}`];
    wire.expectRejection(await once(wire.gateway, headers), 503, 'database_unavailable');
    await claims.renew();
    late.resolve();
    const there = 'SELECT 1 FROM idempotency_record WHERE answer IS NULL';
    // The gateway, which looks by itself now and then, may undo it at once.
    await taken;
    await claims.renew();
    expect(await query(there)).toEqual([]);
    expect((await once(wire.gateway, headers)).status).toBe(200);
    await claims.renew();
    expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBe('true');
  },
);

it('a call that outlasts its lease keeps it, and gives its duplicate the response', async () => {
  const goOn = deferred();
  const { script } = wire.provider;
  wire.provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer('200 OK', [], 'long'));
  };
  const before = wire.provider.requests.length;
  const headers = [auth, 'Idempotency-Key: long'];
  const first = await open(wire.gateway, headers);
  await eventually(() => wire.provider.requests.length > before);
  const [former] = await query(
    'UPDATE idempotency_record SET lease_until = now() WHERE answer IS NULL RETURNING lease_until::text AS until',
  );
  await claims.renew();
  // This renewal skips a record that one of the gateway's own has locked.
  await eventually(async () => {
    const renewed = await query(
      `SELECT 1 FROM idempotency_record
       WHERE answer IS NULL AND lease_until > '${former!.until as string}'::timestamptz + interval '5 seconds'`,
    );
    return renewed.length === 1;
  });
  const looks = jest.spyOn(records, 'states');
  const duplicate = await open(wire.gateway, headers);
  await eventually(() => looks.mock.results.length > 0);
  await looks.mock.results[0]!.value;
  goOn.resolve();
  expect((await duplicate.answer()).body.toString()).toBe('long');
  expect((await first.answer()).body.toString()).toBe('long');
  first.destroy();
  duplicate.destroy();
  wire.provider.script = script;
});

never('a response that cannot be encrypted is not stored', async () => {
  jest.spyOn(wire.gateway.gateway.app.get(ResponseCipher), 'seal').mockImplementationOnce(() => {
    throw new RangeError('no memory');
  });
  const before = wire.provider.requests.length;
  const headers = [auth, 'Idempotency-Key: unsealed'];
  for (const replayed of [undefined, undefined, 'true']) {
    const reply = await once(wire.gateway, headers);
    expect([reply.status, reply.header('idempotent-replayed')]).toEqual([200, replayed]);
  }
  expect(wire.provider.requests.length - before).toBe(2);
});

it.each([
  ['is of no use later', answer('500 No', [])],
  ['finds no room', answer('200 OK', [], 'large')],
  ['was cut', Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')],
])('a response that %s ends only when a retry may run the call', async (what, bytes) => {
  const { script } = wire.provider;
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.end(bytes);
  };
  if (what === 'finds no room')
    jest.spyOn(wire.gateway.gateway.app.get(StoredBytes), 'hasRoom').mockReturnValueOnce(false);
  const release = records.release.bind(records);
  const released = deferred();
  const claimed = jest.spyOn(records, 'claim');
  const asked = deferred();
  jest.spyOn(records, 'release').mockImplementation(async (holders) => {
    // By itself, the gateway releases the claims of the tests before that failed.
    if (claimed.mock.calls.some(([of]) => holders.includes(of))) {
      asked.resolve();
      await released.promise;
    }
    await release(holders);
  });
  const headers = [auth, `Idempotency-Key: ends-${bytes.length}`];
  const client = await open(wire.gateway, headers);
  const order: string[] = [];
  const ended = client
    .answer()
    .catch(() => {})
    .then(() => order.push('ended'));
  await asked.promise;
  await noticed(wire.gateway);
  order.push('released');
  released.resolve();
  await ended;
  expect(order).toEqual(['released', 'ended']);
  wire.provider.script = script;
  expect((await once(wire.gateway, headers)).status).toBe(200);
  client.destroy();
});

it('a replay waits until it is on the disk, where that is asked for', async () => {
  const headers = [auth, 'Idempotency-Key: durable'];
  await once(wire.gateway, headers);
  const onDisk = deferred();
  const asked = jest
    .spyOn(wire.gateway.gateway.app.get(RequestLogService), 'durable')
    .mockReturnValueOnce(onDisk.promise);
  const client = await open(wire.gateway, headers);
  const order: string[] = [];
  const reply = client.answer().then(() => order.push('answer'));
  await eventually(() => asked.mock.calls.length > 0);
  await noticed(wire.gateway);
  order.push('on disk');
  onDisk.resolve();
  await reply;
  expect(order).toEqual(['on disk', 'answer']);
  client.destroy();
});

it('a stop waits for a response that Postgres is to be offered again', async () => {
  const own = await Wire.start();
  const line = `Authorization: Bearer ${await own.gateway.createKey({ idempotency: 'replay' })}`;
  const store = jest.spyOn(own.gateway.gateway.app.get(IdempotencyRecords), 'store');
  store.mockRejectedValueOnce(new Error('away'));
  await once(own.gateway, [line, 'Idempotency-Key: again']);
  await eventually(() => store.mock.calls.length === 1);
  await own.gateway.gateway.stop();
  const kept = await own.gateway.database.query('SELECT answer IS NOT NULL AS kept FROM idempotency_record');
  expect(kept).toEqual([{ kept: true }]);
  await own.stop();
});

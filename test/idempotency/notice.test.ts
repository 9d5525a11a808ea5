import pg from 'pg';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

let wire: Wire;
let auth: string;
let goOn: Deferred;
beforeAll(async () => {
  wire = await Wire.start({ SHUTDOWN_GRACE_MS: '100' }, async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer(req.head.includes('Key: released') ? '500 No' : '200 OK', []));
  });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());
beforeEach(() => {
  goOn = deferred();
});

it('a notice of each end makes who waits look at once', async () => {
  const before = wire.provider.requests.length;
  await open(wire.gateway, [auth, 'Idempotency-Key: waited']);
  await eventually(() => wire.provider.requests.length > before);
  const [record] = await wire.gateway.database.query<{ id: string }>(
    "SELECT encode(id, 'hex') AS id FROM idempotency_record WHERE answer IS NULL",
  );
  const states = jest.spyOn(wire.gateway.gateway.app.get(IdempotencyRecords), 'states');
  const twin = await open(wire.gateway, [auth, 'Idempotency-Key: waited']);
  await eventually(() => states.mock.calls.length > 0);
  // Polls alone would take longer than this test may.
  for (let i = 0; i < 30; i++) {
    const looks = states.mock.calls.length;
    await wire.gateway.database.query('SELECT pg_notify($1, $2)', ['postern_idempotency', record!.id]);
    await eventually(() => states.mock.calls.length > looks);
  }
  goOn.resolve();
  expect((await twin.answer()).header('idempotent-replayed')).toBe('true');
  states.mockRestore();
}, 20_000);

it('gives notice of an answer, of a call that may run again, and of one that was given up', async () => {
  const listener = new pg.Client({ connectionString: wire.gateway.database.url });
  const heard: string[] = [];
  listener.on('notification', ({ payload }) => heard.push(payload!));
  await listener.connect();
  await listener.query('LISTEN postern_idempotency');
  goOn.resolve();
  for (const name of ['stored', 'released']) {
    await once(wire.gateway, [auth, `Idempotency-Key: ${name}`]);
    await eventually(() => heard.length > 0);
    expect(heard.splice(0)).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  }
  goOn = deferred();
  const before = wire.provider.requests.length;
  await open(wire.gateway, [auth, 'Idempotency-Key: abandoned']);
  await eventually(() => wire.provider.requests.length > before);
  await wire.gateway.gateway.stop();
  await eventually(() => heard.length > 0);
  await listener.end();
});

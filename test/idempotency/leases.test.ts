import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ClaimsService } from '../../src/idempotency/claims.service.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

let wire: Wire;
let auth: string;
let goOn: Deferred;
let status: string;
beforeAll(async () => {
  wire = await Wire.start({}, async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer(status, [], 'late'));
  });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());
beforeEach(() => {
  goOn = deferred();
  status = '200 OK';
  wire.provider.requests.length = 0;
});

const query = <T extends object>(sql: string) => wire.gateway.database.query<T>(sql);

async function running(...names: string[]) {
  const clients = await Promise.all(
    names.map((name) => open(wire.gateway, [auth, `Idempotency-Key: ${name}`])),
  );
  await eventually(() => wire.provider.requests.length === names.length);
  return clients;
}

it('a running call keeps its lease, also while the record of another one is locked', async () => {
  const clients = await running('locked', 'free');
  const locker = new pg.Client({ connectionString: wire.gateway.database.url });
  locker.on('error', () => {});
  await locker.connect();
  await locker.query('BEGIN');
  const locked = await locker.query<{ id: Buffer }>('SELECT id FROM idempotency_record LIMIT 1 FOR UPDATE');
  const free = `id <> '\\x${locked.rows[0]!.id.toString('hex')}'`;
  await query(`UPDATE idempotency_record SET lease_until = now() + interval '1 second' WHERE ${free}`);
  await wire.gateway.gateway.app.get(ClaimsService).keep();
  const lasting = await query(
    `SELECT 1 FROM idempotency_record WHERE ${free} AND lease_until > now() + interval '5 seconds'`,
  );
  expect(lasting).toHaveLength(1);
  await locker.query('ROLLBACK');
  await locker.end();
  goOn.resolve();
  for (const client of clients) expect((await client.answer()).status).toBe(200);
});

it('a repeat of a running call whose lease could not be renewed for a while is not told that it is lost', async () => {
  const [client] = await running('away');
  await query("UPDATE idempotency_record SET lease_until = now() - interval '1 second' WHERE answer IS NULL");
  const twin = await open(wire.gateway, [auth, 'Idempotency-Key: away']);
  await sleep(300);
  goOn.resolve();
  expect((await client!.answer()).status).toBe(200);
  const reply = await twin.answer();
  expect([reply.status, reply.header('idempotent-replayed')]).toEqual([200, 'true']);
  expect(wire.provider.requests.length).toBe(1);
});

it('a repeat locks nothing: it keeps no lease from being renewed, and Postgres has nothing to write', async () => {
  goOn.resolve();
  await once(wire.gateway, [auth, 'Idempotency-Key: unlocked']);
  expect((await once(wire.gateway, [auth, 'Idempotency-Key: unlocked'])).status).toBe(200);
  expect(await query('SELECT DISTINCT xmax::text FROM idempotency_record')).toEqual([{ xmax: '0' }]);
});

it('a call that runs for longer than a record lasts is not made again', async () => {
  const [client] = await running('long');
  await query("UPDATE idempotency_record SET expires_at = now() - interval '1 second' WHERE answer IS NULL");
  const twin = await open(wire.gateway, [auth, 'Idempotency-Key: long']);
  await sleep(300);
  goOn.resolve();
  for (const one of [client!, twin]) expect((await one.answer()).status).toBe(200);
  expect(wire.provider.requests.length).toBe(1);
});

it.each(['200 OK', '500 No'])(
  'a record that another call has taken over is not ended by %s',
  async (late) => {
    status = late;
    await query('TRUNCATE idempotency_record');
    const [client] = await running('taken');
    const other = 'ffffffff-ffff-7fff-bfff-ffffffffffff';
    await query(`UPDATE idempotency_record SET call_id = '${other}' WHERE answer IS NULL`);
    goOn.resolve();
    expect((await client!.answer()).body.toString()).toBe('late');
    await wire.gateway.gateway.app.get(ClaimsService).keep();
    const [left] = await query<{ call_id: string; answer: Buffer | null }>(
      'SELECT call_id, answer FROM idempotency_record WHERE answer IS NULL',
    );
    expect(left).toEqual({ call_id: other, answer: null });
    await query("UPDATE idempotency_record SET lease_until = '-infinity' WHERE answer IS NULL");
    wire.expectRefusal(
      await once(wire.gateway, [auth, 'Idempotency-Key: taken']),
      409,
      'idempotency_outcome_unknown',
    );
  },
);

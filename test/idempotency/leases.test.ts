import pg from 'pg';
import { ClaimStore } from '../../src/idempotency/claim-store.service.js';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { PendingResponses } from '../../src/idempotency/pending-responses.service.js';
import { changesApplied } from '../support/changes-applied.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { noticed } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

describe('leases', () => {
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
  afterEach(() => jest.restoreAllMocks());
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

  /** A duplicate that has seen the state of the record, and waits. */
  async function waitingDuplicate(name: string) {
    const { app } = wire.gateway.gateway;
    const looks = jest.spyOn(app.get(IdempotencyRecords), 'states');
    const client = await open(wire.gateway, [auth, `Idempotency-Key: ${name}`]);
    await eventually(() => app.get(PendingResponses).waiting === 1);
    await Promise.all(looks.mock.results.map(({ value }) => value as Promise<unknown>));
    await noticed(wire.gateway);
    return client;
  }

  it('a running call keeps its lease, also while the record of another one is locked', async () => {
    const clients = await running('locked', 'free');
    const locker = new pg.Client({ connectionString: wire.gateway.database.url });
    locker.on('error', () => {});
    await locker.connect();
    await locker.query('BEGIN');
    const locked = await locker.query<{ id: Buffer }>('SELECT id FROM idempotency_record LIMIT 1 FOR UPDATE');
    const free = `id <> '\\x${locked.rows[0]!.id.toString('hex')}'`;
    const [former] = await query<{ until: string }>(
      `UPDATE idempotency_record SET lease_until = now() WHERE ${free} RETURNING lease_until::text AS until`,
    );
    await wire.gateway.gateway.app.get(ClaimStore).renew();
    // This renewal skips a record that one of the gateway's own has locked.
    await eventually(async () => {
      const renewed = await query(
        `SELECT 1 FROM idempotency_record WHERE ${free} AND lease_until > '${former!.until}'::timestamptz + interval '5 seconds'`,
      );
      return renewed.length === 1;
    });
    await locker.query('ROLLBACK');
    await locker.end();
    goOn.resolve();
    for (const client of clients) expect((await client.answer()).status).toBe(200);
  });

  it('a retry of a running call whose lease could not be renewed for a while gets no unknown outcome', async () => {
    const [client] = await running('away');
    await query(
      "UPDATE idempotency_record SET lease_until = now() - interval '1 second' WHERE answer IS NULL",
    );
    const duplicate = await waitingDuplicate('away');
    goOn.resolve();
    expect((await client!.answer()).status).toBe(200);
    const reply = await duplicate.answer();
    expect([reply.status, reply.header('idempotent-replayed')]).toEqual([200, 'true']);
    expect(wire.provider.requests.length).toBe(1);
  });

  it('a retry locks nothing: it keeps no lease from being renewed, and Postgres has nothing to write', async () => {
    goOn.resolve();
    await once(wire.gateway, [auth, 'Idempotency-Key: unlocked']);
    expect((await once(wire.gateway, [auth, 'Idempotency-Key: unlocked'])).status).toBe(200);
    expect(await query('SELECT DISTINCT xmax::text FROM idempotency_record')).toEqual([{ xmax: '0' }]);
  });

  never('a call that runs for longer than a record lasts is not made again', async () => {
    const [client] = await running('long');
    await query(
      "UPDATE idempotency_record SET expires_at = now() - interval '1 second' WHERE answer IS NULL",
    );
    const duplicate = await waitingDuplicate('long');
    goOn.resolve();
    for (const one of [client!, duplicate]) expect((await one.answer()).status).toBe(200);
    expect(wire.provider.requests.length).toBe(1);
  });

  never.each(['200 OK', '500 No'])(
    'a record that another call has taken over is not ended by %s',
    async (late) => {
      status = late;
      await query('TRUNCATE idempotency_record');
      const [client] = await running('taken');
      const other = 'ffffffff-ffff-7fff-bfff-ffffffffffff';
      await query(`UPDATE idempotency_record SET call_id = '${other}' WHERE answer IS NULL`);
      goOn.resolve();
      expect((await client!.answer()).body.toString()).toBe('late');
      await wire.gateway.gateway.app.get(ClaimStore).renew();
      const [left] = await query<{ call_id: string; answer: Buffer | null }>(
        'SELECT call_id, answer FROM idempotency_record WHERE answer IS NULL',
      );
      expect(left).toEqual({ call_id: other, answer: null });
      await query("UPDATE idempotency_record SET lease_until = '-infinity' WHERE answer IS NULL");
      wire.expectRejection(
        await once(wire.gateway, [auth, 'Idempotency-Key: taken']),
        409,
        'idempotency_outcome_unknown',
      );
    },
  );
});

describe('Postgres unavailable', () => {
  let provider: RawProvider;
  let database: TestDatabase;
  let forwarder: TcpForwarder;
  let gateway: TestGateway;
  let auth: string;

  beforeAll(async () => {
    provider = await RawProvider.start(() => {});
    database = await createDatabase();
    forwarder = await TcpForwarder.to(database.url);
    await forwarder.open();
    gateway = await startTestGateway({ PROVIDER_URL: provider.url, DATABASE_URL: forwarder.url }, database);
    auth = `Authorization: Bearer ${await gateway.createKey({ idempotency: 'replay' })}`;
    provider.script = ok;
    // Known from here on: no notice that is still under way makes the gateway look it up again.
    await changesApplied(gateway);
    await once(gateway, [auth]);
  });
  afterAll(async () => {
    await gateway.stop();
    await forwarder.close();
    await database.drop();
    await provider.stop();
  });
  beforeEach(() => {
    provider.requests.length = 0;
  });

  async function ok(req: Parameters<RawProvider['script']>[0]): Promise<void> {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  }

  it('rejects such calls without Postgres, serves all others, and recovers by itself', async () => {
    await forwarder.close();
    const headers = [auth, 'Idempotency-Key: away'];
    const rejected = await once(gateway, headers);
    expect([rejected.status, rejected.header('x-gateway-error'), rejected.header('retry-after')]).toEqual([
      503,
      'database_unavailable',
      '1',
    ]);
    expect(rejected.body.toString()).toContain('Idempotency-Key');
    expect((await once(gateway, [auth])).status).toBe(200);
    expect(provider.requests.length).toBe(1);
    await forwarder.open();
    const reply = await eventually(async () => {
      const again = await once(gateway, headers);
      return again.status === 200 && again;
    });
    expect(reply.header('idempotent-replayed')).toBeUndefined();
    expect(provider.requests.length).toBe(2);
  });

  it('keeps a response that came while Postgres was unavailable', async () => {
    const goOn = deferred();
    provider.script = async (req) => {
      await goOn.promise;
      await ok(req);
    };
    const headers = [auth, 'Idempotency-Key: meanwhile'];
    const client = await open(gateway, headers);
    await eventually(() => provider.requests.length === 1);
    await forwarder.close();
    goOn.resolve();
    expect((await client.answer()).body.toString()).toBe('ok');
    await forwarder.open();
    const repeat = await eventually(async () => {
      const reply = await once(gateway, headers);
      return reply.status === 200 && reply;
    });
    expect(repeat.header('idempotent-replayed')).toBe('true');
    expect(provider.requests.length).toBe(1);
  });
});

import { ClaimStore } from '../../src/idempotency/claim-store.service.js';
import { StoredBytes } from '../../src/idempotency/stored-bytes.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

describe('expiry', () => {
  let wire: Wire;
  let auth: string;
  beforeAll(async () => {
    wire = await Wire.start();
    auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
  });
  afterAll(() => wire.stop());

  const query = (sql: string) => wire.gateway.database.query(sql);
  /** A response is stored while its last bytes are sent. */
  const allStored = () =>
    eventually(async () => {
      const missing = await query('SELECT FROM idempotency_record WHERE answer IS NULL');
      return missing.length === 0;
    });
  const stored = () => wire.gateway.gateway.app.get(StoredBytes);
  /** Measures again, also if the timer has just measured what was stored before. */
  const measure = () => {
    Reflect.set(stored(), 'stale', true);
    return stored().onMeasure();
  };

  it('a call may be made again a day later, also before what has expired was deleted', async () => {
    const headers = [auth, 'Idempotency-Key: daily'];
    await once(wire.gateway, headers, 'one');
    const hours = await query(
      'SELECT round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours FROM idempotency_record',
    );
    expect(hours).toEqual([{ hours: 24 }]);
    await query("UPDATE idempotency_record SET expires_at = now() - interval '1 second'");
    const reply = await once(wire.gateway, headers, 'two');
    expect([reply.body.toString(), reply.header('idempotent-replayed')]).toEqual(['two', undefined]);
    expect((await once(wire.gateway, headers, 'two')).header('idempotent-replayed')).toBe('true');
  });

  it('what has expired is deleted, in steps; what runs or lasts is not', async () => {
    await query('TRUNCATE idempotency_record');
    const at = (age: string, lease: string) =>
      `now() - interval '${age}', now() - interval '${lease}' FROM generate_series(1, 1100) n`;
    const insert = (name: string, times: string) =>
      query(
        `INSERT INTO idempotency_record (id, key_id, call_id, expires_at, lease_until)
       SELECT ('\\x' || md5('${name}' || n))::bytea, gen_random_uuid(), gen_random_uuid(), ${times}`,
      );
    await insert('expired', at('1 minute', '1 day'));
    await insert('running', at('1 minute', '-10 seconds'));
    await insert('lasting', at('-1 hour', '1 day'));
    await stored().onSweep();
    expect(
      await query(
        'SELECT expires_at < now() AS expired, count(*)::int FROM idempotency_record GROUP BY 1 ORDER BY 1',
      ),
    ).toEqual([
      { expired: false, count: 1100 },
      { expired: true, count: 1100 },
    ]);
    await query('TRUNCATE idempotency_record');
  });

  it('past its share a key has its calls made and not kept, and others theirs kept', async () => {
    const other = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
    await once(wire.gateway, [auth, 'Idempotency-Key: full-0']);
    await allStored();
    await query('UPDATE idempotency_record SET stored_bytes = 256 * 1024 * 1024');
    await measure();
    const replayed = async (own: string) => {
      const before = wire.provider.requests.length;
      for (let i = 0; i < 2; i++)
        expect((await once(wire.gateway, [own, 'Idempotency-Key: full-1'])).status).toBe(200);
      return wire.provider.requests.length - before === 1;
    };
    expect([await replayed(auth), await replayed(other)]).toEqual([false, true]);
    await query('UPDATE idempotency_record SET stored_bytes = 1');
    await measure();
    expect(await replayed(auth)).toBe(true);
  });

  it('past what all keys may take up, calls are made and not kept', async () => {
    await query(
      `INSERT INTO idempotency_record (id, key_id, call_id, expires_at, lease_until, stored_bytes)
     SELECT ('\\x' || md5('all' || n))::bytea, gen_random_uuid(), gen_random_uuid(), now() + interval '1 hour', now(),
       256 * 1024 * 1024 FROM generate_series(1, 16) n`,
    );
    await measure();
    const headers = [auth, 'Idempotency-Key: all-full'];
    for (let i = 0; i < 2; i++)
      expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBeUndefined();
    await query('TRUNCATE idempotency_record');
    await measure();
    await once(wire.gateway, headers);
    expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBe('true');
  });

  it('a response that can no longer be opened is not given, and the call not made again', async () => {
    const headers = [auth, 'Idempotency-Key: sealed'];
    await once(wire.gateway, headers);
    const env = { PROVIDER_URL: wire.provider.url, MASTER_KEY: Buffer.alloc(32, 1).toString('base64') };
    const replica = await startTestGateway(env, wire.gateway.database);
    const before = wire.provider.requests.length;
    wire.expectRejection(await once(replica, headers), 409, 'idempotency_outcome_unknown');
    expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBe('true');
    expect(wire.provider.requests.length).toBe(before);
    await replica.stop();
  });

  it('a response moved to another record does not open there', async () => {
    const [one, two] = ['moved-1', 'moved-2'].map((name) => [auth, `Idempotency-Key: ${name}`]);
    await query('TRUNCATE idempotency_record');
    await once(wire.gateway, one!, 'one');
    await once(wire.gateway, two!, 'one');
    await allStored();
    await query(
      'UPDATE idempotency_record a SET answer = b.answer, call_id = b.call_id FROM idempotency_record b WHERE a.id <> b.id',
    );
    for (const headers of [one!, two!])
      wire.expectRejection(await once(wire.gateway, headers, 'one'), 409, 'idempotency_outcome_unknown');
  });
});

describe('memory', () => {
  const MIB = 1024 * 1024;
  const ALL = 256 * MIB;
  const large = Buffer.alloc(6 * MIB, 'l');

  let wire: Wire;
  let auth: string;
  let claims: ClaimStore;
  beforeAll(async () => {
    wire = await Wire.start({}, async (req) => {
      await req.body;
      req.socket.write(answer('200 OK', [], large));
    });
    auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
    claims = wire.gateway.gateway.app.get(ClaimStore);
  });
  afterAll(() => wire.stop());

  const KEY = (name: string) => [auth, `Idempotency-Key: ${name}`];

  /** All that is taken has been given back. */
  const allFree = () =>
    eventually(() => {
      if (!claims.reserve(ALL)) return false;
      claims.free(ALL);
      return true;
    });

  it('responses that slow clients have yet to take are counted, first ones and repeated ones, until they have', async () => {
    expect((await once(wire.gateway, KEY('stored'))).body.equals(large)).toBe(true);
    await allFree();
    expect(claims.reserve(ALL - 10 * MIB)).toBe(true);

    for (const name of ['first', 'stored']) {
      const slow = await open(wire.gateway, KEY(name));
      await slow.head();
      slow.socket.pause();
      const repeat = await eventually(async () => {
        const reply = await once(wire.gateway, KEY('stored'));
        return reply.status === 503 && reply;
      });
      wire.expectRejection(repeat, 503, 'overloaded');
      // A first call runs all the same, and is not kept.
      const before = wire.provider.requests.length;
      for (let i = 0; i < 2; i++) expect((await once(wire.gateway, KEY(`beyond-${name}`))).status).toBe(200);
      expect(wire.provider.requests.length).toBe(before + 2);
      slow.destroy();
      await eventually(async () => (await once(wire.gateway, KEY('stored'))).status === 200);
    }
    claims.free(ALL - 10 * MIB);
    await allFree();
  });
});

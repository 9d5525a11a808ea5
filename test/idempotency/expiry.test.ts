import { StoredBytes } from '../../src/idempotency/stored-bytes.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { Wire } from '../support/wire.js';
import { once } from './once.js';

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
    await allStored();
    const hours = await query(
      'SELECT round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours FROM idempotency_record',
    );
    expect(hours).toEqual([{ hours: 24 }]);
    await query("UPDATE idempotency_record SET expires_at = now() - interval '1 second'");
    const reply = await once(wire.gateway, headers, 'two');
    expect([reply.body.toString(), reply.header('idempotent-replayed')]).toEqual(['two', undefined]);
    expect((await once(wire.gateway, headers, 'two')).header('idempotent-replayed')).toBe('true');
  });

  never('what has expired is deleted, in steps; what runs or lasts is not', async () => {
    await query('TRUNCATE idempotency_record');
    const at = (age: string, lease: string) =>
      `now() - interval '${age}', now() - interval '${lease}' FROM generate_series(1, 1100) n`;
    const insert = (name: string, times: string) =>
      query(
        `INSERT INTO idempotency_record (id, key_id, call_id, expires_at, lease_until)
       SELECT ('\\x' || md5('${name}' || n))::bytea, gen_random_uuid(), gen_random_uuid(), ${times}`,
      );
    await insert('expired', at('1 minute', '1 day'));
    await insert('running', at('1 minute', '-1 hour'));
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

  it('past its share a key has its calls made and not kept, as they say, and others theirs kept', async () => {
    const other = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
    await once(wire.gateway, [auth, 'Idempotency-Key: full-0']);
    await allStored();
    await query('UPDATE idempotency_record SET stored_bytes = 256 * 1024 * 1024');
    await measure();
    const told: (string | undefined)[] = [];
    const replayed = async (own: string) => {
      const before = wire.provider.requests.length;
      for (let i = 0; i < 2; i++) {
        const reply = await once(wire.gateway, [own, 'Idempotency-Key: full-1']);
        told.push(reply.header('idempotency-stored'));
        expect(reply.status).toBe(200);
      }
      return wire.provider.requests.length - before === 1;
    };
    expect([await replayed(auth), await replayed(other)]).toEqual([false, true]);
    expect(told).toEqual(['false', 'false', undefined, undefined]);
    await query('UPDATE idempotency_record SET stored_bytes = 1');
    await measure();
    expect(await replayed(auth)).toBe(true);
  });

  it('past its share a team has its calls made and not kept, and other teams theirs kept', async () => {
    const keyOf = async (team: string) =>
      `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay', team })}`;
    for (const name of ['filling', 'sparing']) await wire.gateway.admin('POST', '/teams', { name });
    // Half of what all may take up, by 9 keys of one team.
    for (let i = 0; i < 9; i++) await once(wire.gateway, [await keyOf('filling'), 'Idempotency-Key: fills']);
    await allStored();
    await query(
      `UPDATE idempotency_record SET stored_bytes = 228 * 1024 * 1024 WHERE key_id IN (
         SELECT k.id FROM gateway_key k JOIN team t ON t.id = k.team_id WHERE t.name = 'filling')`,
    );
    await measure();
    const stored = async (team: string) =>
      (await once(wire.gateway, [await keyOf(team), 'Idempotency-Key: one-more'])).header(
        'idempotency-stored',
      );
    expect([await stored('filling'), await stored('sparing')]).toEqual(['false', undefined]);
    await allStored();
    await query('TRUNCATE idempotency_record');
    await measure();
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

  never('a response moved to another record does not open there', async () => {
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

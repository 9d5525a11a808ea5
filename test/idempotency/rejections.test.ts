import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { ClaimStore } from '../../src/idempotency/claim-store.service.js';
import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { PendingResponses } from '../../src/idempotency/pending-responses.service.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { CHAT, once, open } from './once.js';

describe('rejections', () => {
  let wire: Wire;
  let auth: string;
  beforeAll(async () => {
    wire = await Wire.start();
    auth = await key({ idempotency: 'replay', endpoints: 'all' });
  });
  afterAll(() => wire.stop());

  const key = async (properties: object) =>
    `Authorization: Bearer ${await wire.gateway.createKey(properties)}`;
  const calls = () => wire.provider.requests.length;

  never.each([
    ['empty', ''],
    ['a space within', 'a b'],
    ['256 characters', 'x'.repeat(256)],
    ['256 characters in quotes', `"${'x'.repeat(256)}"`],
    ['empty quotes', '""'],
    ['an open quote', '"abc'],
    ['a closed quote and more', '"abc"d'],
    ['a lone backslash in quotes', '"a\\b"'],
    ['bytes outside ASCII', 'caf\xe9'],
  ])('rejects a key that is malformed: %s', async (_, value) => {
    const before = calls();
    const reply = await once(wire.gateway, [auth, `Idempotency-Key: ${value}`]);
    wire.expectRejection(reply, 400, 'invalid_idempotency_key');
    expect(reply.header('x-should-retry')).toBe('false');
    expect(calls()).toBe(before);
  });

  it('rejects two keys on one call', async () => {
    const reply = await once(wire.gateway, [auth, 'Idempotency-Key: a', 'Idempotency-Key: b']);
    wire.expectRejection(reply, 400, 'invalid_idempotency_key');
  });

  it.each(['x', '~!{}', 'x'.repeat(255), `"${'x'.repeat(254)}"`, 'a"b\\c', '"a\\"b"'])(
    'takes %s',
    async (value) => {
      const before = calls();
      const unique = `/v1/chat/completions?${randomUUID()}`;
      const reply = await once(wire.gateway, [auth, `Idempotency-Key: ${value}`], '{}', `POST ${unique}`);
      const repeat = await once(wire.gateway, [auth, `Idempotency-Key: ${value}`], '{}', `POST ${unique}`);
      expect([reply.status, repeat.status, calls() - before]).toEqual([200, 200, 1]);
    },
  );

  never('rejects a retry with another body, and keeps the response for the right one', async () => {
    const headers = [auth, 'Idempotency-Key: mismatch'];
    await once(wire.gateway, headers, '{"a":1}');
    const before = calls();
    for (const body of ['{"a": 1}', '', '{"a":1}\n', 'x'.repeat(300_000)]) {
      const reply = await once(wire.gateway, headers, body);
      wire.expectRejection(reply, 422, 'idempotency_mismatch');
      expect(reply.header('x-should-retry')).toBe('false');
    }
    const chunked = [...headers, 'Transfer-Encoding: chunked'];
    expect((await once(wire.gateway, chunked, '3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n')).body.toString()).toBe(
      '{"a":1}',
    );
    expect(calls()).toBe(before);
    // A rejection is no call: only responses leave rows.
    const rows = await wire.gateway.database.query(
      "SELECT count(*)::int AS rows FROM request_log WHERE idempotency_key = 'mismatch' AND status = 422",
    );
    expect(rows).toEqual([{ rows: 0 }]);
  });

  never('never shows one key the responses of another, of its own team or another', async () => {
    await wire.gateway.admin('POST', '/teams', { name: 'other' });
    const others = [
      await key({ idempotency: 'replay', endpoints: 'all' }),
      await key({ idempotency: 'replay', endpoints: 'all', team: 'other' }),
    ];
    const before = calls();
    for (const [i, own] of [auth, ...others].entries()) {
      const reply = await once(wire.gateway, [own, 'Idempotency-Key: shared'], `body ${i}`);
      expect([reply.body.toString(), reply.header('idempotent-replayed')]).toEqual([`body ${i}`, undefined]);
    }
    expect(calls()).toBe(before + 3);
  });

  it('is scoped to path and query as they were sent', async () => {
    const before = calls();
    const lines = [
      CHAT,
      `${CHAT}?`,
      `${CHAT}?a=1`,
      'POST /v1/embeddings',
      'POST /p/default/v1/chat/completions',
      'POST /v1/chat%2Fcompletions',
    ];
    for (const line of lines) {
      const reply = await once(wire.gateway, [auth, 'Idempotency-Key: scope'], '{}', line);
      expect(reply.header('idempotent-replayed')).toBeUndefined();
    }
    expect(calls()).toBe(before + lines.length);
  });

  it('means nothing for other methods, nor for keys in forward mode, which make no query', async () => {
    const forward = await key({ endpoints: 'all' });
    const before = calls();
    // The first look-up of the key is over, and so is what ran before.
    await once(wire.gateway, [forward]);
    const at = await wire.gateway.database.query<{ at: Date }>('SELECT clock_timestamp() AS at');
    for (let i = 0; i < 2; i++) {
      const value = ['Idempotency-Key: a b', 'Idempotency-Key: plain'][i]!;
      for (const [own, line] of [
        [forward, CHAT],
        [forward, CHAT],
        [auth, 'PUT /v1/files/1'],
        [auth, 'PUT /v1/files/1'],
      ] as const) {
        const reply = await once(wire.gateway, [own, value], `${i}`, line);
        expect([reply.status, reply.header('idempotent-replayed')]).toEqual([200, undefined]);
      }
    }
    expect(calls()).toBe(before + 9);
    const queries = await wire.gateway.database.query(
      // Of no call: the sizes are measured every 10 s, and what has expired is deleted each minute.
      `SELECT query FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'postern-idempotency' AND query_start > $1
         AND query NOT LIKE '%sum(stored_bytes)%' AND query !~ 'expires_at <= now\\(\\) AND lease_until <= now\\(\\)'`,
      [at[0]!.at],
    );
    expect(queries).toEqual([]);
  });
});

describe('uncertain', () => {
  let wire: Wire;
  let auth: string;
  beforeAll(async () => {
    wire = await Wire.start({}, async (req) => {
      await req.body;
      req.socket.write(answer(wire.provider.requests.length === 1 ? '500 No' : '200 OK', []));
    });
    auth = `Authorization: Bearer ${await wire.gateway.createKey({ idempotency: 'replay' })}`;
  });
  afterAll(() => wire.stop());
  afterEach(() => jest.restoreAllMocks());
  beforeEach(() => {
    wire.provider.requests.length = 0;
  });

  const records = () => wire.gateway.gateway.app.get(IdempotencyRecords);
  const keep = () => wire.gateway.gateway.app.get(ClaimStore).renew();

  it('a claim whose statement came through although no word of it did binds nobody', async () => {
    const headers = [auth, 'Idempotency-Key: claim'];
    const claim = IdempotencyRecords.prototype.claim.bind(records());
    let late: (() => Promise<unknown>) | undefined;
    jest.spyOn(records(), 'claim').mockImplementationOnce((...args) => {
      late = () => claim(...args);
      return Promise.reject(new Error('Query read timeout'));
    });
    wire.expectRejection(await once(wire.gateway, headers), 503, 'database_unavailable');
    // Looked for before it is there, too.
    await keep();
    expect(await late!()).toBe(true);
    await keep();
    expect((await once(wire.gateway, headers)).status).toBe(500);
    expect(wire.provider.requests.length).toBe(1);
  });

  it('a release that did not come through is made up for', async () => {
    const headers = [auth, 'Idempotency-Key: release'];
    const release = records().release.bind(records());
    const claimed = jest.spyOn(records(), 'claim');
    let rejected = 0;
    jest.spyOn(records(), 'release').mockImplementation(async (holders) => {
      // By itself, the gateway releases the uncertain claim of the test before.
      if (rejected === 0 && claimed.mock.calls.some(([of]) => holders.includes(of))) {
        rejected++;
        throw new Error('Query read timeout');
      }
      await release(holders);
    });
    expect((await once(wire.gateway, headers)).status).toBe(500);
    expect(rejected).toBe(1);
    await keep();
    expect((await once(wire.gateway, headers)).status).toBe(200);
    expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBe('true');
    expect(wire.provider.requests.length).toBe(2);
  });
});

describe('notice', () => {
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
    const pending = wire.gateway.gateway.app.get<unknown, { timer?: NodeJS.Timeout }>(PendingResponses);
    delete pending.timer;
    await open(wire.gateway, [auth, 'Idempotency-Key: waited']);
    await eventually(() => wire.provider.requests.length > before);
    const [record] = await wire.gateway.database.query<{ id: string }>(
      "SELECT encode(id, 'hex') AS id FROM idempotency_record WHERE answer IS NULL",
    );
    const states = jest.spyOn(wire.gateway.gateway.app.get(IdempotencyRecords), 'states');
    const duplicate = await open(wire.gateway, [auth, 'Idempotency-Key: waited']);
    await eventually(() => states.mock.calls.length > 0);
    for (let i = 0; i < 3; i++) {
      // No poll looks in place of the notice.
      clearTimeout(await eventually(() => pending.timer));
      delete pending.timer;
      const looks = states.mock.calls.length;
      await wire.gateway.database.query('SELECT pg_notify($1, $2)', ['postern_idempotency', record!.id]);
      await eventually(() => states.mock.calls.length > looks);
    }
    goOn.resolve();
    expect((await duplicate.answer()).header('idempotent-replayed')).toBe('true');
    states.mockRestore();
  });

  it('gives notice of a response, of a call that may run again, and of an abandoned one', async () => {
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
});

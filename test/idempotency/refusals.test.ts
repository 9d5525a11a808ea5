import { randomUUID } from 'node:crypto';
import { Wire } from '../support/wire.js';
import { CHAT, once } from './once.js';

let wire: Wire;
let auth: string;
beforeAll(async () => {
  wire = await Wire.start();
  auth = await key({ idempotency: 'replay', endpoints: 'all' });
});
afterAll(() => wire.stop());

const key = async (properties: object) => `Authorization: Bearer ${await wire.gateway.createKey(properties)}`;
const calls = () => wire.provider.requests.length;

it.each([
  ['empty', ''],
  ['a space within', 'a b'],
  ['256 characters', 'x'.repeat(256)],
  ['256 characters in quotes', `"${'x'.repeat(256)}"`],
  ['empty quotes', '""'],
  ['an open quote', '"abc'],
  ['a closed quote and more', '"abc"d'],
  ['a lone backslash in quotes', '"a\\b"'],
  ['bytes outside ASCII', 'caf\xe9'],
])('refuses a key that is malformed: %s', async (_, value) => {
  const before = calls();
  const reply = await once(wire.gateway, [auth, `Idempotency-Key: ${value}`]);
  wire.expectRefusal(reply, 400, 'invalid_idempotency_key');
  expect(reply.header('x-should-retry')).toBe('false');
  expect(calls()).toBe(before);
});

it('refuses two keys on one call', async () => {
  const reply = await once(wire.gateway, [auth, 'Idempotency-Key: a', 'Idempotency-Key: b']);
  wire.expectRefusal(reply, 400, 'invalid_idempotency_key');
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

it('refuses a repeat with another body, and keeps the answer for the right one', async () => {
  const headers = [auth, 'Idempotency-Key: mismatch'];
  await once(wire.gateway, headers, '{"a":1}');
  const before = calls();
  for (const body of ['{"a": 1}', '', '{"a":1}\n', 'x'.repeat(300_000)]) {
    const reply = await once(wire.gateway, headers, body);
    wire.expectRefusal(reply, 422, 'idempotency_mismatch');
    expect(reply.header('x-should-retry')).toBe('false');
  }
  const chunked = [...headers, 'Transfer-Encoding: chunked'];
  expect((await once(wire.gateway, chunked, '3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n')).body.toString()).toBe(
    '{"a":1}',
  );
  expect(calls()).toBe(before);
  // A refusal is no call: only answers leave rows.
  const rows = await wire.gateway.database.query(
    "SELECT count(*)::int AS rows FROM request_log WHERE idempotency_key = 'mismatch' AND status = 422",
  );
  expect(rows).toEqual([{ rows: 0 }]);
});

it('never shows one key the answers of another, of its own team or another', async () => {
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
    "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'postern-idempotency' AND query_start > $1",
    [at[0]!.at],
  );
  expect(queries).toEqual([]);
});

import fc from 'fast-check';
import { v7 as uuidv7 } from 'uuid';
import { generateKey } from '../../src/keys/key-secret.js';
import type { CallOrigin, CallRecord } from '../../src/request-log/call-record.js';
import {
  decodeLines,
  encodeLine,
  encodeLines,
  encodeRecord,
  MAX_LINE_LENGTH,
} from '../../src/request-log/journal/record-codec.js';
import type { Phase } from '../../src/request-log/column.js';
import { columnsOf, LOGGED_COLUMNS, type LogRow } from '../../src/request-log/columns.js';
import { emptyRow, setBegin, setEnd, setUsage } from '../../src/request-log/log-row.js';
import { OUTCOMES } from '../../src/request-log/request-log.entity.js';
import { DAY_MS, dayOf } from '../../src/request-log/partitions.js';
import { NO_USAGE } from '../../src/bodies/usage/token-usage.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { liveBytes } from '../support/live-bytes.js';
import { never } from '../support/never.js';
import { sample } from '../support/property.js';
import { LogHarness } from './log-harness.js';
import { KEY, TEAM } from './rows.js';

let database: TestDatabase;
let log: LogHarness;
beforeAll(async () => {
  database = await createDatabase();
  log = await LogHarness.start(database.url);
});
afterAll(async () => {
  await log.stop();
  await log.remove();
  await database.drop();
});

const CALLERS_KEY = generateKey();
const OTHER_KEY = generateKey();
/** What a call's origin holds beside what its row tells. */
const UNTOLD = {
  upstream: 'http://127.0.0.1',
  basePath: '',
  arrivedAt: 0,
  attribution: null,
  attributesBody: false,
  traceparent: null,
  tracestate: null,
};

/** Text with whatever breaks text: NUL, lone surrogates, controls, quotes, great length. */
const nasty = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 60 })
    .map((codes) => String.fromCharCode(...codes)),
  fc.constantFrom(
    '\0',
    'a\0b',
    '\ud800',
    '\udc00x',
    'x'.repeat(65_536),
    '\u0001'.repeat(2_000),
    '\u{1d11e}'.repeat(600),
    `${'y'.repeat(1_023)}\u{1d11e}`,
    '{"a":"b\\"}\n',
    "');DROP TABLE request_log;--",
    '{NULL,"a"}',
    'NULL',
    '',
  ),
);
const keyed = fc
  .tuple(nasty, fc.constantFrom(CALLERS_KEY, OTHER_KEY), nasty)
  .map(([before, key, after]) => before.slice(0, 3_000) + key + after);
const textOrNull = fc.option(fc.oneof({ weight: 6, arbitrary: nasty }, { weight: 1, arbitrary: keyed }));
const number = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.nat(),
  fc.constantFrom(
    NaN,
    Infinity,
    -Infinity,
    -0,
    -1,
    40_000,
    32_767,
    32_768,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 53,
    1e300,
    1e-300,
  ),
);
const numberOrNull = fc.option(number);
const address = fc.option(
  fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV6().map((ip) => `${ip}%eth0`),
    fc.constantFrom(
      'fe80::1%25lo',
      '::ffff:1.2.3.4',
      '1.2.3.4/8',
      '::/0',
      '999.1.1.1',
      '127.1',
      '',
      ' 1.2.3.4',
      '1.2.3.4\0',
    ),
    nasty,
  ),
);
/** Any millisecond of a few days: each day gets a partition, and one far ahead would wait. */
const started = fc
  .tuple(
    fc.constantFrom(
      0,
      Date.UTC(1999, 11, 31),
      Date.UTC(2024, 1, 29),
      dayOf(Date.now()),
      dayOf(Date.now()) + DAY_MS,
    ),
    fc.nat(DAY_MS - 1),
  )
  .map(([day, ms]) => day + ms);

const call = fc.record({
  started,
  path: nasty,
  userAgent: textOrNull,
  idempotencyKey: textOrNull,
  subject: textOrNull,
  sdkRetryCount: numberOrNull,
  clientIp: address,
  outcome: fc.option(fc.constantFrom(...OUTCOMES)),
  errorCode: fc.option(fc.constantFrom('upstream_timeout', 'request_timeout')),
  errorCause: fc.option(fc.oneof(fc.constantFrom('ECONNREFUSED', 'UND_ERR_SOCKET'), nasty, keyed)),
  error: fc.option(fc.record({ type: textOrNull, code: textOrNull }), { nil: undefined }),
  headError: fc.option(fc.record({ type: textOrNull, code: textOrNull })),
  altered: fc.option(fc.constantFrom('models', 'stream_usage')),
  attempt: fc.option(fc.record({ callId: fc.constant(KEY), number: fc.integer() })),
  status: numberOrNull,
  streamed: fc.boolean(),
  requestBytes: number,
  responseBytes: number,
  ttfbMs: numberOrNull,
  durationMs: numberOrNull,
  providerRequestId: textOrNull,
  attribution: fc.option(
    fc.record({
      endUser: textOrNull,
      sessionId: textOrNull,
      tags: fc.option(fc.dictionary(nasty, nasty).map((tags) => JSON.stringify(tags))),
    }),
  ),
  reservation: fc.option(
    fc.record({
      usd: numberOrNull,
      tokens: numberOrNull,
      subject: textOrNull,
      session: textOrNull,
      budgets: nasty.map((text) => ({ named: () => text })),
      isModelKnown: fc.boolean(),
    }),
  ),
  requestModel: textOrNull,
  model: textOrNull,
  tokens: fc.tuple(numberOrNull, numberOrNull, numberOrNull, numberOrNull, numberOrNull),
  extra: fc.option(
    fc.dictionary(
      fc.oneof(fc.constantFrom('web_searches', 'service_tier'), fc.string({ unit: 'binary' })),
      fc.oneof(fc.constantFrom('batch', 7), fc.double(), fc.string({ unit: 'binary' })),
      { maxKeys: 4 },
    ),
  ),
});

function rowOf(facts: typeof call extends fc.Arbitrary<infer T> ? T : never): LogRow {
  const origin: CallOrigin = {
    ...facts,
    ...UNTOLD,
    id: uuidv7({ msecs: facts.started }),
    keyId: KEY,
    teamId: TEAM,
    key: CALLERS_KEY,
    provider: 'default',
    method: 'POST',
    endpoint: facts.path,
  };
  // Only what the columns are made of; the rest of a record needs a live call.
  const record = { ...facts, origin, units: null } as unknown as CallRecord;
  const [promptTokens, completionTokens, cachedTokens, reasoningTokens, cacheWriteTokens] = facts.tokens;
  const row = emptyRow();
  setBegin(row, record, facts.attribution);
  setEnd(row, record);
  setUsage(row, record, {
    model: facts.model,
    promptTokens,
    completionTokens,
    cachedTokens,
    reasoningTokens,
    cacheWriteTokens,
    extra: facts.extra,
    reportedCost: null,
    ...(facts.error !== undefined && { error: facts.error }),
  });
  // What the journal gives back is what went in, and no line is too long for its reader.
  const line = encodeLine({ t: 'R', ...row });
  expect(line.length).toBeLessThan(MAX_LINE_LENGTH);
  // JSON knows no -0.
  const parsed = (record: object) => JSON.parse(JSON.stringify(record)) as Record<string, unknown>;
  expect(decodeLines(line)).toEqual({
    records: [parsed({ t: 'R', ...row })],
    corrupt: 0,
    rest: Buffer.alloc(0),
  });
  const { id } = origin;
  const part = (phase: Phase) => Object.fromEntries(columnsOf(phase).map(({ name }) => [name, row[name]]));
  const whole = [
    { t: 'B', ...part('begin') },
    { t: 'E', id, ...part('end') },
    { t: 'U', id, ...part('usage') },
  ].map(parsed);
  const recordsOf = (withNulls: boolean) =>
    decodeLines(encodeLines((['B', 'E', 'U'] as const).map((t) => encodeRecord(t, row, withNulls)))).records;
  expect(recordsOf(true)).toEqual(whole);
  expect(recordsOf(false)).toEqual(
    whole.map((record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))),
  );
  return row;
}

never('makes a row that Postgres takes of whatever a call brings', async () => {
  const facts = sample(call, 4_000);
  const rows = facts.map(rowOf);
  for (const row of rows) log.writer.add(row, []);
  await eventually(() => log.writer.waiting === 0);
  expect(log.writer.counts).toMatchObject({ enqueued: rows.length, persisted: rows.length, rejected: 0 });
  expect(await log.rejectedFiles()).toEqual([]);

  const found = await database.query<LogRow & { client_ip: string | null; started_at: string | Date }>(
    'SELECT *, host(client_ip) AS client_ip FROM request_log',
  );
  expect(found).toHaveLength(rows.length);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const texts = ['path', 'user_agent', 'idempotency_key', 'provider_request_id', 'model'] as const;
  const ints = [
    'status',
    'sdk_retry_count',
    'prompt_tokens',
    'completion_tokens',
    'cached_tokens',
    'reasoning_tokens',
    'cache_write_tokens',
  ] as const;
  for (const row of found) {
    const sent = byId.get(row.id)!;
    expect(new Date(row.started_at).toISOString()).toBe(sent.started_at);
    for (const name of [...texts, 'outcome', 'error_code', 'method'] as const)
      expect(row[name]).toBe(sent[name]);
    for (const name of texts) {
      expect(row[name]?.length ?? 0).toBeLessThanOrEqual(1_024);
      expect(row[name] ?? '').not.toMatch(/ptn_[0-9A-Za-z]{38}/);
    }
    for (const name of ['error_cause', 'provider_error_type', 'provider_error_code'] as const) {
      expect(row[name]).toBe(sent[name]);
      expect(row[name] ?? 'x').toMatch(/^[\w.:-]{1,64}$/);
      expect(row[name] ?? '').not.toMatch(/ptn_[0-9A-Za-z]{38}/);
    }
    for (const name of ints) expect(row[name]).toEqual(sent[name] === null ? null : sent[name] + 0);
    expect(row.client_ip === null).toBe(sent.client_ip === null);
  }
  // A key anywhere in a text takes the whole text with it, and nothing else does.
  for (const [i, { userAgent }] of facts.entries()) {
    const hasKey = userAgent !== null && (userAgent.includes(CALLERS_KEY) || userAgent.includes(OTHER_KEY));
    expect(rows[i]!.user_agent === null).toBe(userAgent === null || hasKey);
  }
});

never.each([
  ['begin', (row: LogRow, record: CallRecord) => setBegin(row, record, null)],
  ['end', (row: LogRow, record: CallRecord) => setEnd(row, record)],
  ['usage', (row: LogRow, record: CallRecord) => setUsage(row, record, NO_USAGE)],
] as const)('sets in the phase "%s" exactly the columns of its journal record', (phase, set) => {
  const untouched = Symbol('untouched');
  // Whether the usage is final depends on these.
  const known: Record<string, unknown> = { method: 'POST', path: '/v1/chat/completions', status: 200 };
  const before = Object.fromEntries(LOGGED_COLUMNS.map(({ name }) => [name, untouched as unknown]));
  if (phase === 'usage') Object.assign(before, known);
  const row = { ...before };
  set(
    row as unknown as LogRow,
    {
      origin: { id: uuidv7(), key: CALLERS_KEY },
      reservation: { budgets: { named: () => '{}' } },
      attempt: {},
      units: null,
    } as unknown as CallRecord,
  );
  const changed = LOGGED_COLUMNS.filter(({ name }) => row[name] !== before[name]);
  expect(changed).toEqual(columnsOf(phase));
});

it('does not keep a long text alive for the part it stores', () => {
  // A slice of a string holds on to all of it.
  const origin = (i: number): CallOrigin => ({
    id: uuidv7(),
    keyId: KEY,
    teamId: TEAM,
    subject: null,
    key: CALLERS_KEY,
    provider: 'default',
    method: 'POST',
    path: '/v1/chat/completions',
    endpoint: '/v1/chat/completions',
    clientIp: null,
    idempotencyKey: null,
    sdkRetryCount: null,
    ...UNTOLD,
    userAgent: `${i}`.repeat(65_536 / `${i}`.length),
  });
  const before = liveBytes();
  const rows = Array.from({ length: 4_000 }, (_, i) => {
    const row = emptyRow();
    setBegin(row, { origin: origin(1_000 + i), reservation: null, attempt: null } as CallRecord, null);
    return row;
  });
  // Held, they would be 250 MB.
  expect(liveBytes() - before).toBeLessThan(50_000_000);
  expect(rows.at(-1)!.user_agent).toHaveLength(1_024);
});

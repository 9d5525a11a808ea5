// `node bench/meters.mjs`, after `npm run build`: processor time that limits and budgets add to a call. It runs what a call runs
// for them, from the policy to its row, and the same parts of a call without any; no sockets, no exchange with Postgres.
import { Ledger } from '../dist/src/limits/ledger/ledger.js';
import { setOf } from '../dist/src/limits/ledger/rule-set.js';
import { LimitPolicy } from '../dist/src/limits/limit-policy.js';
import { CompiledPrice } from '../dist/src/pricing/cost.js';
import { PolicyCall } from '../dist/src/proxy/policies/policy-call.js';
import { CallRecord } from '../dist/src/request-log/call-record.js';
import { FinishedCalls } from '../dist/src/request-log/finished-calls.js';
import { encodeLines, encodeRecord } from '../dist/src/request-log/journal/record-codec.js';
import { emptyRow, setBegin, setEnd, setUsage } from '../dist/src/request-log/log-row.js';
import { insertRows, settlingWith } from '../dist/src/request-log/writer/insert-rows.js';
import { median } from './statistics.mjs';

const CALLS = 5_000;
const ROUNDS = 15;
const WARM_UP = 30_000;
const BATCH = 200;
const SESSION = 'session-1';
const ENDPOINT = '/v1/chat/completions';
const grant = {
  keyId: '0198a8c4-7f0e-7e3b-9d7a-1b2c3d4e5f60',
  teamId: '0198a8c4-7f0e-7e3b-9d7a-1b2c3d4e5f61',
};

let rules = 0;
const rule = (owner, resource, period, more = {}) => ({
  ...{
    id: `rule ${++rules}`,
    nr: String(3141592653589793230n + BigInt(rules)),
    scope: owner,
    owner,
    ownerId: 'o',
  },
  ...{
    ownerName: null,
    each: '',
    resource,
    period,
    timeZone: 'UTC',
    filter: '',
    providers: null,
    models: null,
  },
  ...{
    isHot: owner === 'installation',
    amount: 10n ** 15n,
    mode: 'block',
    unpriced: 'reject',
    removed: false,
  },
  ...{ reservation: 'typical', ...more },
});
const two = (owner, usd = 'month', tokens = 'day', more = {}) => [
  rule(owner, 'usd', usd, more),
  rule(owner, 'tokens', tokens, more),
];
const KINDS = {
  none: [],
  'a budget in USD': [rule('key', 'usd', 'month')],
  'limits of requests, tokens and concurrency, budgets of tokens and USD': [
    ...two('key'),
    rule('key', 'requests', 'minute'),
    rule('key', 'tokens', 'minute'),
    rule('key', 'concurrent_requests', 'at_once'),
  ],
  '8 budgets: key, team, installation, session': [
    ...two('key'),
    ...two('team'),
    rule('installation', 'usd', 'month'),
    rule('installation', 'usd', 'month', { providers: ['default'], filter: 'provider=default' }),
    ...two('key', 'session', 'session', { each: 'session' }),
  ],
};

const text = 'x'.repeat(950);
const body = Buffer.from(
  JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }] }),
);
const headers = { 'user-agent': 'OpenAI/JS 6.49.0', 'content-type': 'application/json' };
const rawHeaders = Object.entries({ ...headers, 'x-claude-code-session-id': SESSION }).flat();
const stored = { id: 'p', input: '0.15', output: '0.6', cached_input: null, cache_write: null, tiers: null };
const price = new CompiledPrice({ ...stored, cache_write_1h: null, extra: null, per_call: null });
const prices = { known: () => [{ from: 0, price, row: {} }] };
const env = { attribution: 'all', limitsWithoutDatabase: 'reject' };
const users = { shown: (attribution) => attribution };
const usage = {
  ...{ promptTokens: 300, completionTokens: 50, cachedTokens: null, cacheWriteTokens: null, closing: 'end' },
  ...{ reasoningTokens: null, extra: null, reportedCost: null, model: 'gpt-4o-mini' },
};

/** @returns what makes one call that these rules count */
function callOf(list) {
  const set = setOf(list);
  const known = { isLoaded: true, isEmpty: false, of: () => set, listen() {} };
  const ledger = new Ledger(known, { databaseUrl: '', process: '', voidMs: 1e9, staleMs: 1e9 });
  ledger.subjectOf = () => '-';
  ledger.subjectOfSession = () => SESSION;
  const now = Date.now();
  ledger.periods.add(['day', 'month'].map((period) => [period, 'UTC', now, now + 1e9, now]));
  ledger.clock.set(now, Infinity, performance.now());
  // All that the calls will use, so that none waits for an exchange.
  for (const one of list) {
    const meter = ledger.meters.of(one, one.each === '' ? '' : SESSION, now + 1);
    if (one.period === 'minute') Object.assign(meter, { lease: 1e15, validUntil: Infinity });
    else meter.held = 1e15;
  }
  const policy = new LimitPolicy({ changed() {} }, known, ledger, prices, env);
  const finished = new FinishedCalls();
  const settling = settlingWith(ledger);
  let rows = [];
  let count = 0;
  return () => {
    const time = (Date.now() + 1).toString(16).padStart(12, '0');
    const id = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${(++count).toString(16).padStart(12, '0')}`;
    const record = new CallRecord({
      ...{ id, ...grant, key: 'ptn_0123456789', provider: 'default', method: 'POST', path: ENDPOINT },
      ...{ endpoint: ENDPOINT, basePath: '', upstream: '', arrivedAt: 0, clientIp: '127.0.0.1' },
      ...{ userAgent: headers['user-agent'], idempotencyKey: null, sdkRetryCount: null },
      ...{ attribution: { endUser: null, sessionId: SESSION, tags: null }, attributesBody: true },
      ...{ traceparent: null, tracestate: null },
    });
    if (set !== null) record.body.mustBeCertain();
    record.requestChunkRead(body);
    record.requestBodyRead();
    if (set !== null) {
      const call = { id, record, provider: { name: 'default', basePath: '' }, routed: null, webSocket: null };
      const target = { endpoint: ENDPOINT, upstreamPath: ENDPOINT };
      const admitted = new PolicyCall({
        method: 'POST',
        headers,
        rawHeaders,
        target,
        caller: { grant },
        call,
      });
      policy.needsBody(admitted);
      admitted.gathered(body);
      record.addTicket(policy.admit(admitted));
    }
    const row = emptyRow();
    const journal = (type) => (sink += encodeLines([encodeRecord(type, row)]).length);
    setBegin(row, record, users.shown(record.attribution));
    journal('B');
    record.responseBegun(200, ['content-type', 'application/json', 'x-request-id', id]);
    record.isWhole = record.judge('completed', null);
    setEnd(row, record);
    journal('E');
    setUsage(row, record, usage);
    journal('U');
    finished.notify(row, record, usage);
    row.cost_usd = '0.000075000';
    if (rows.push(row) < BATCH) return;
    sink += insertRows(rows, settling).values.length;
    ledger.written(rows);
    rows = [];
  };
}

let sink = 0;
const calls = Object.entries(KINDS).map(([name, list]) => ({ name, call: callOf(list), found: [] }));
for (const { call } of calls) for (let i = 0; i < WARM_UP; i++) call();
for (let round = 0; round < ROUNDS; round++)
  for (const { call, found } of calls) {
    const before = process.cpuUsage();
    for (let i = 0; i < CALLS; i++) call();
    const { user, system } = process.cpuUsage(before);
    found.push((user + system) / CALLS);
  }
const [none, ...others] = calls;
console.log(`without: ${median(none.found).toFixed(1)} µs`);
for (const { name, found } of others) {
  const more = found.map((micros, round) => micros - none.found[round]);
  console.log(
    `${name}: ${median(more).toFixed(1)} µs more (${Math.min(...more).toFixed(1)} to ${Math.max(...more).toFixed(1)})`,
  );
}
if (sink === 0) process.exitCode = 1;
// What would be exchanged has no Postgres.
process.exit();

// Calls of four kinds at a time, with prompts of 100 KiB: streams, some of them left in the middle, calls and streams of a key
// with limits and budgets, and calls of a key with a response cache. Each response is compared with what the provider sends for
// these bytes of a request.
import { createHash } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createIn, readFrom, startWithKey } from '../contenders/keyed.mjs';
import { promptBody } from '../load/request.mjs';
import { answerOf, eventsOf } from './responses.mjs';

const KIB = 100;
/** Of each kind. */
const CONNECTIONS = 8;
/** Between two calls of a connection. */
const PAUSE_MS = 100;
const LEFT_SHARE = 0.05;
/** Different prompts of calls that come again. */
const PROMPTS = 50;
const SETTLE_MS = 60_000;
const PRICE = { catalog: 'default', model: 'gpt-4o-mini', input: '0.15', output: '0.6' };
const LIMITED = {
  models: ['gpt-4o-mini'],
  limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 100_000 },
  budgets: [
    { usd: '1000000', period: 'month' },
    { tokens: 1e12, period: 'day' },
  ],
};
const CACHED = { cache: { ttl_seconds: 3_600, shared: 'key' } };

/** A gateway with the keys of the four kinds. */
export async function startMixed(bench, options) {
  const gateway = await startWithKey(bench, {}, PRICE, options.env, options.nodeArgs);
  const limited = await createIn(gateway, 'keys', { team: 'default', name: 'limited', ...LIMITED });
  const cached = await createIn(gateway, 'keys', { team: 'default', name: 'cached', ...CACHED });
  return { ...gateway, limited, cached };
}

/** @param end of the load (performance.now()) @returns calls by kind, how many were left, and of the cache's how many were hits */
export async function loadMixed(gateway, end) {
  const agent = new Agent({ keepAlive: true });
  const made = { streams: 0, left: 0, limited: 0, 'limited streams': 0, cached: 0, hits: 0 };
  const headersOf = ({ key }) => ({ authorization: `Bearer ${key}` });
  const [limited, cached] = [headersOf(gateway.limited), headersOf(gateway.cached)];
  const kinds = [
    ['streams', gateway.headers, true, () => Math.random() * PROMPTS],
    ['limited', limited, false, () => Math.random() * PROMPTS],
    ['limited streams', limited, true, () => Math.random() * PROMPTS],
    // Half of them are new.
    [
      'cached',
      cached,
      false,
      () => Math.random() * PROMPTS + (Math.random() < 0.5 ? 0 : PROMPTS + made.cached),
    ],
  ];
  const one = async ([kind, headers, isStreamed, number]) => {
    const body = promptBody(KIB, Math.floor(number()), isStreamed);
    const isLeft = kind === 'streams' && Math.random() < LEFT_SHARE;
    made[kind]++;
    const { text, hit } = await call(agent, gateway.port, headers, body, isLeft);
    if (hit) made.hits++;
    if (isLeft) made.left++;
    const id = createHash('sha256').update(body).digest('hex');
    const expected = isStreamed ? eventsOf(id).join('') : answerOf(id);
    if (isLeft ? !expected.startsWith(text) : text !== expected)
      throw new Error(`${kind}: the response is not what the provider sent: ${text.slice(0, 200)}`);
  };
  const loops = kinds.flatMap((kind) =>
    Array.from({ length: CONNECTIONS }, async () => {
      for (; performance.now() < end; await sleep(PAUSE_MS)) await one(kind);
    }),
  );
  try {
    await Promise.all(loops);
  } finally {
    agent.destroy();
  }
  return made;
}

/** @param isLeft the client disconnects after some of the response */
function call(agent, port, headers, body, isLeft) {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ agent, port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions' },
      headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      const hit = response.headers['x-gateway-cache'] === 'hit';
      if (response.statusCode !== 200) reject(new Error(`a call was answered with ${response.statusCode}`));
      response.on('error', reject);
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
        if (!isLeft || text.length < 1_000) return;
        resolve({ text, hit });
        sent.destroy();
      });
      response.on('end', () => resolve({ text, hit }));
    });
    sent.end(body);
  });
}

/** @returns [what was spent of a budget, the sum of the charges in the log], once nothing is held any more */
export async function budgetsOf(gateway) {
  const [sums] = await gateway.database.ask(
    'SELECT sum(charge_usd)::text AS usd, sum(charge_tokens)::text AS tokens FROM request_log WHERE key_id = $1',
    [gateway.limited.id],
  );
  for (const deadline = performance.now() + SETTLE_MS; ; await sleep(500)) {
    const { data } = await readFrom(gateway, `limits?key=${gateway.limited.id}`);
    const budgets = data.filter(({ period, resource }) => period !== 'minute' && resource in sums);
    const pairs = budgets.map(({ resource, used }) => [resource, Number(used), Number(sums[resource])]);
    const isSettled = pairs.length === 2 && pairs.every(([, used, sum]) => Math.abs(used - sum) < 1e-9);
    if (isSettled || performance.now() > deadline) return pairs;
  }
}

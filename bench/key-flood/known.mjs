// The callers who hold a good key: how long do they wait?
import { Pool } from 'undici';

const BODY = JSON.stringify({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'x'.repeat(900) }],
});
const pools = new Map();

/** @returns status, and ms since the call was due */
async function call(url, key, address, due) {
  const pool = pools.get(url) ?? new Pool(url, { connections: 64 });
  pools.set(url, pool);
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'x-forwarded-for': address,
    },
    body: BODY,
  });
  await body.dump();
  return { status: statusCode, ms: performance.now() - due };
}

/**
 * Calls due at a fixed rate, whatever became of the ones before. Timed from the moment each was due: else a gateway that
 * stalls would hide the waiting of all calls held back meanwhile.
 */
export async function steadyCalls({ url, key, perSecond, forMs }) {
  const calls = [];
  const start = performance.now();
  const total = Math.round((forMs / 1_000) * perSecond);
  await new Promise((done) => {
    const timer = setInterval(() => {
      while (calls.length < total) {
        const due = start + (calls.length * 1_000) / perSecond;
        if (due > performance.now()) return;
        calls.push(call(url, key, '192.0.2.1', due));
      }
      clearInterval(timer);
      done();
    }, 1);
  });
  return Promise.all(calls);
}

/** The first call of each key, so many ms apart, each from an address of its own unless one is given. */
export async function firstCalls({ url, keys, apart, address }) {
  const calls = keys.map(async (key, i) => {
    await new Promise((due) => setTimeout(due, (i + 1) * apart));
    return call(url, key, address ?? `203.0.113.${i + 1}`, performance.now());
  });
  return Promise.all(calls);
}

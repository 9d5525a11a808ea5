// `node bench/cache.mjs`, after `npm run build`: processor time that the response cache of a key adds to a call that is not
// in it, and what a call takes that is. One gateway; keys with and without a cache take turns.
import { Pool } from 'undici';
import { startPostern } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';
import { startNodeProvider } from './provider/node.mjs';
import { median } from './statistics.mjs';

const ADMIN_TOKEN = 'bench-cache-admin-token-0123456789abcdef';
const PATH = '/v1/chat/completions';
const IN_FLIGHT = 16;
const CALLS = 3_000;
const ROUNDS = 7;

await withWorkplace(600_000, run);

async function run({ workplace, postgres }) {
  const provider = await startNodeProvider(workplace);
  const gateway = await startPostern({ workplace, provider, postgres }, { env: { ADMIN_TOKEN } });
  const pool = new Pool(`http://127.0.0.1:${gateway.port}`, { connections: IN_FLIGHT });
  const issue = async (name, members) => {
    const { body } = await pool.request({
      method: 'POST',
      path: '/admin/v1/keys',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ team: 'default', name, ...members }),
    });
    return (await body.json()).key;
  };
  const plain = await issue('plain', {});
  const cached = await issue('cached', { cache: { ttl_seconds: 3_600, shared: 'key' } });
  let sent = 0;
  const bodyOf = (name) =>
    JSON.stringify({ model: 'gpt-4o', messages: [{ content: `${name}${'x'.repeat(1_000)}` }] });

  /** Microseconds of the gateway's processor time a call. */
  const round = async (key, body, wanted) => {
    const before = treeMicros(gateway.pid);
    let left = CALLS;
    const send = async () => {
      while (left-- > 0) {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const response = await pool.request({ method: 'POST', path: PATH, headers, body: body() });
        await response.body.dump();
        if (response.statusCode !== 200 || response.headers['x-gateway-cache'] !== wanted)
          throw new Error(`${response.statusCode}, x-gateway-cache: ${response.headers['x-gateway-cache']}`);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, send));
    return (treeMicros(gateway.pid) - before) / CALLS;
  };
  const another = () => bodyOf(`call ${++sent} `);
  const same = () => bodyOf('the same ');
  const found = { off: [], miss: [], hit: [] };
  for (let i = 0; i < ROUNDS + 2; i++) {
    const off = await round(plain, another);
    const miss = await round(cached, another);
    if (i === 0) await fill(pool, cached, same());
    const hit = await round(cached, same, 'hit');
    // The first ones warm up.
    if (i >= 2) for (const [name, one] of Object.entries({ off, miss, hit })) found[name].push(one);
  }
  await pool.close();
  for (const [name, all] of Object.entries(found))
    console.log(
      `${name}: ${median(all).toFixed(1)} µs a call (${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)})`,
    );
  const added = found.miss.map((one, i) => one - found.off[i]);
  console.log(
    `a miss adds ${median(added).toFixed(1)} µs (${Math.min(...added).toFixed(1)} to ${Math.max(...added).toFixed(1)})`,
  );
}

/** Until its response is stored. */
async function fill(pool, key, body) {
  for (;;) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await pool.request({ method: 'POST', path: PATH, headers, body });
    await response.body.dump();
    if (response.headers['x-gateway-cache'] === 'hit') return;
  }
}

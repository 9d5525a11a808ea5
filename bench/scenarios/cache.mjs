// What does the response cache of a key add to a call whose response is not stored, and what does one take whose response is?
// Short rounds of keys with and without a cache, in one gateway, in turns.
import { setTimeout as sleep } from 'node:timers/promises';
import { createIn, startWithKey } from '../contenders/keyed.mjs';
import { compareRows } from '../contenders/start-all.mjs';
import { threadMicros } from '../cpu-time.mjs';
import { closedLoop } from '../load/closed-loop.mjs';
import { chatRequest } from '../load/request.mjs';
import { figure } from '../report.mjs';
import { median, percentile, ratios } from '../statistics.mjs';

const CONNECTIONS = 16;
const WARM_UP = 3_000;
const FOR_MS = 120_000;
/** The last rows and responses of a round are written within it. */
const SETTLE_MS = 200;
/** Characters of a prompt that are another number in each call. */
const NUMBER_LENGTH = 12;

export const CACHE_COLUMNS = ['Node', 'no cache µs', 'not stored +µs', 'stored / no cache'];

/** @returns µs of processor time a call in each round: without a cache, and with one, not stored and stored */
export async function measureCache(bench, { rounds, calls, say }) {
  const gateway = { ...(await startWithKey(bench, {})), calls: 0 };
  const cache = { ttl_seconds: 3_600, shared: 'key' };
  const { key } = await createIn(gateway, 'keys', { team: 'default', name: 'cached', cache });
  const cached = { Authorization: `Bearer ${key}` };
  const same = chatRequest({ ...gateway, headers: cached });
  const kinds = {
    off: anew(chatRequest(gateway)),
    miss: anew(same),
    hit: () => same,
  };
  const made = { off: 0, miss: 0, hit: 0 };
  const run = async (kind, most) => {
    const before = threadMicros(gateway.pid);
    const loop = await closedLoop({
      ...{ port: gateway.port, request: kinds[kind], connections: CONNECTIONS, forMs: FOR_MS, most },
    });
    await sleep(SETTLE_MS);
    gateway.calls += loop.calls;
    made[kind] += loop.calls;
    return (threadMicros(gateway.pid) - before) / loop.calls;
  };
  // Until the response is stored.
  let hitsBefore = 0;
  for (; hitsBefore === 0; hitsBefore = (await gateway.database.outcomes()).cached ?? 0) {
    await run('hit', 1);
    await gateway.database.settledRows(gateway.calls);
  }
  made.hit = 0;
  for (const kind of Object.keys(kinds)) await run(kind, WARM_UP);
  const found = { off: [], miss: [], hit: [] };
  for (let round = 0; round < rounds; round++)
    for (const kind of round % 2 === 0 ? Object.keys(kinds) : Object.keys(kinds).reverse())
      found[kind].push(await run(kind, calls));
  say(`cache: ${Object.entries(found).map(([kind, all]) => `${kind} ${figure(median(all))} µs`)}`);
  const { postern } = await compareRows([{ ...gateway, name: 'postern' }]);
  const hits = postern.outcomes.cached - hitsBefore;
  if (hits !== made.hit) throw new Error(`${made.hit} calls should be from the cache, but ${hits} were`);
  await gateway.stop();
  return found;
}

/** The same request with another number in its prompt each time. */
function anew(request) {
  let sent = 0;
  const at = request.lastIndexOf('x'.repeat(NUMBER_LENGTH));
  return () => {
    const next = Buffer.from(request);
    next.write(String(++sent).padStart(NUMBER_LENGTH, '0'), at, 'latin1');
    return next;
  };
}

/** The row of a table. */
export function cacheRow(version, { off, miss, hit }) {
  const added = miss.map((one, i) => one - off[i]);
  return [version, figure(median(off)), spread(added, 0), spread(ratios(hit, off), 2)];
}

function spread(all, digits) {
  const [low, high] = [0.25, 0.75].map((share) => figure(percentile(all, share), digits));
  return `${figure(median(all), digits)} (${low} to ${high})`;
}

// `node bench/budgets.mjs [--before CHECKOUT]`, after `npm run build`: processor time that limits and budgets add to a whole
// call. Short rounds of one key after the other, in one gateway: what slows the machine down is the same for two rounds that
// follow each other, and the median of their differences leaves out what is not. With another checkout that is built, also
// what the same keys take there.
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ADMIN_TOKEN, createIn } from './contenders/keyed.mjs';
import { startArgs, startGateway } from './contenders/postern.mjs';
import { threadMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';
import { closedLoop } from './load/closed-loop.mjs';
import { chatRequest } from './load/request.mjs';
import { startProvider } from './provider/provider.mjs';
import { median, percentile } from './statistics.mjs';
import { root } from './workplace.mjs';

const { values } = parseArgs({
  options: { before: { type: 'string' }, rounds: { type: 'string', default: '120' } },
});
const ROUNDS = Number(values.rounds);
/** So few that the next round of the same key begins within 5 s, after which a gateway returns what it holds of a budget. */
const CALLS = 200;
const CONNECTIONS = 16;
const WARM_UP = { most: 8_000, forMs: 60_000 };
/** Most rows of a round are written before the next one. */
const SETTLE_MS = 150;
const MAX_MS = 2 * 3_600_000;
const PRICE = { catalog: 'default', model: 'gpt-4o-mini', input: '0.15', output: '0.6' };

const usd = (period) => ({ usd: '1000000', period, unpriced: 'allow' });
const tokens = (period, more = {}) => ({ tokens: 1e12, period, ...more });
/** What is left of chance. */
const AGAIN = 'the same once more';
/** None is reached. */
const KINDS = {
  'a plain key': {},
  [AGAIN]: {},
  'limits of requests, tokens and concurrency, budgets of tokens and USD': {
    limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 100_000 },
    budgets: [usd('month'), tokens('day')],
  },
};
const EIGHT = '8 budgets: key, team, group, session';

await withWorkplace(MAX_MS, run);

async function run({ workplace, postgres }) {
  const bench = { workplace, postgres, provider: await startProvider(workplace) };
  const measured = await keysOf(bench, root, '');
  measured.push({ ...(await eightOf(measured[0].gateway)), base: measured[0] });
  if (values.before !== undefined)
    measured.push(...(await keysOf(bench, resolve(values.before), ', before')));
  for (const one of measured) await load(one, WARM_UP);
  for (let round = 0; round < ROUNDS; round++)
    for (const one of round % 2 === 0 ? measured : measured.toReversed()) {
      const before = threadMicros(one.gateway.pid);
      const { calls } = await load(one, { most: CALLS, forMs: 60_000 });
      await sleep(SETTLE_MS);
      one.found.push((threadMicros(one.gateway.pid) - before) / calls);
    }
  for (const { name, found, base } of measured) {
    if (base === null) {
      console.log(`${name}: ${median(found).toFixed(1)} µs`);
      continue;
    }
    const more = found.map((one, round) => one - base.found[round]);
    const [low, high] = [0.25, 0.75].map((share) => percentile(more, share).toFixed(1));
    console.log(
      `${name}: ${median(more).toFixed(1)} µs more than ${base.name} (quartiles ${low} to ${high})`,
    );
  }
}

/** A gateway of a checkout, and its keys. */
async function keysOf(bench, checkout, suffix) {
  const { flags, entry } = startArgs(checkout);
  const gateway = await startGateway(bench, `gateway${suffix}`.replace(', ', '-'), [...flags, entry], {
    ADMIN_TOKEN,
  });
  await createIn(gateway, 'prices', PRICE);
  const keys = [];
  for (const [name, members] of Object.entries(KINDS)) {
    if (name === AGAIN && suffix !== '') continue;
    const { key } = await createIn(gateway, 'keys', {
      team: 'default',
      name: `bench-${keys.length}`,
      ...members,
    });
    keys.push({ name: name + suffix, gateway, key, found: [], base: keys[0] ?? null });
  }
  return keys;
}

async function eightOf(gateway) {
  await createIn(gateway, 'teams', { name: 'eight', budgets: [usd('month'), tokens('day')] });
  await createIn(gateway, 'groups', {
    name: 'eight',
    teams: ['eight'],
    budgets: [usd('month'), { ...usd('day'), providers: ['default'] }],
  });
  const { key } = await createIn(gateway, 'keys', {
    ...{ team: 'eight', name: 'bench', budgets: [usd('month'), tokens('day')] },
    each_session: { budgets: [usd('session'), tokens('session')] },
  });
  return { name: EIGHT, gateway, key, found: [] };
}

function load({ gateway: { port }, key }, bounds) {
  const headers = { Authorization: `Bearer ${key}`, 'x-gateway-session': 'session-1' };
  return closedLoop({ port, request: chatRequest({ headers }), connections: CONNECTIONS, ...bounds });
}

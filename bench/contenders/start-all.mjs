// The contenders, in the order in which a round goes through them.
import { startBare } from './bare.mjs';
import { startDirect } from './direct.mjs';
import { startFastify } from './fastify.mjs';
import { startHaproxy } from './haproxy.mjs';
import { startLitellm } from './litellm.mjs';
import { startNginx } from './nginx.mjs';
import { startPortkey } from './portkey.mjs';
import { startPostern } from './postern.mjs';

const STARTERS = {
  direct: startDirect,
  bare: startBare,
  nginx: startNginx,
  haproxy: startHaproxy,
  fastify: startFastify,
  postern: startPostern,
  portkey: startPortkey,
  litellm: startLitellm,
};
/** Only with --peers, or by name. */
const PEERS = ['portkey', 'litellm'];

export const NAMES = Object.keys(STARTERS);

/** The names on the command line; by default all but peers. */
export function chosen({ only, peers }) {
  return NAMES.filter((name) => (only === null ? peers || !PEERS.includes(name) : only.includes(name)));
}

/** Starts those; those that are not installed here are left out. `calls`: how many each got so far, for the comparison with rows. */
export async function startAll(bench, names) {
  const started = [];
  for (const name of names) {
    const contender = await STARTERS[name](bench);
    if (contender !== null) started.push({ ...contender, calls: 0 });
  }
  return started;
}

/** Rows in Postgres against calls made, of each contender that writes rows. @throws when one differs */
export async function compareRows(contenders) {
  const found = {};
  for (const { name, database, calls, printed } of contenders) {
    if (database === undefined) continue;
    const rows = await database.settledRows(calls);
    if (rows !== calls)
      throw new Error(`${name}: ${calls} calls, but ${rows} rows in Postgres\n${printed()}`);
    found[name] = { calls, rows, outcomes: await database.outcomes() };
  }
  return found;
}

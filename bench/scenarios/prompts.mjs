// Real prompts: what do a call's bytes cost? Chats of 40 messages, with a streamed response of 300 chunks.
import { compareRows } from '../contenders/start-all.mjs';
import { promptRequest } from '../load/request.mjs';
import { loadSideBySide } from '../load/side-by-side.mjs';
import { startNodeProvider } from '../provider/node.mjs';
import { median } from '../statistics.mjs';

/** KiB of a request. */
export const SIZES = [1, 100, 400];
const CHUNKS = 300;
/** Of each contender: the machine's loopback takes no more of the largest ones. */
const CONNECTIONS = 8;
const WARM_UP_MS = 10_000;

/**
 * @param starters [name, start] of each contender, which gets the bench
 * @returns for each size, in its order: µs of processor time per call by name, one of each repetition
 */
export async function measurePrompts(bench, starters, { reps, windowMs, say }) {
  const provider = await startNodeProvider(bench.workplace);
  const found = SIZES.map(() => Object.fromEntries(starters.map(([name]) => [name, []])));
  for (let rep = 1; rep <= reps; rep++) {
    const contenders = [];
    for (const [name, start] of rep % 2 === 0 ? starters.toReversed() : starters)
      contenders.push({ ...(await start({ ...bench, provider })), name, calls: 0 });
    const load = (kib, forMs) =>
      loadSideBySide(contenders, { forMs, connections: CONNECTIONS }, (contender) =>
        promptRequest(contender, kib, CHUNKS),
      );
    await load(SIZES[1], WARM_UP_MS);
    for (const [i, kib] of SIZES.entries()) {
      const costs = await load(kib, windowMs);
      contenders.forEach(({ name }, one) => found[i][name].push(costs[one]));
    }
    await compareRows(contenders);
    for (const { stop } of contenders) await stop();
    const last = (i) => Object.entries(found[i]).map(([name, all]) => `${name} ${all.at(-1).toFixed(0)} µs`);
    say(
      `prompts, repetition ${rep}: ${SIZES.map((kib, i) => `${kib} KiB ${last(i).join(', ')}`).join('; ')}`,
    );
  }
  await provider.stop();
  return found;
}

/** Rows of a table: the bare proxy, what a key adds to it, and what a budget and a list of models add to that. */
export function promptRows(version, found) {
  const added = (with_, without) => median(with_.map((one, i) => one - without[i])).toFixed(0);
  return SIZES.map((kib, i) => {
    const { bare, key, budget } = found[i];
    return [version, String(kib), median(bare).toFixed(0), added(key, bare), added(budget, key)];
  });
}

// Real prompts: what do a call's bytes cost? Chats of 40 messages, with a streamed response.
import { compareRows } from '../contenders/start-all.mjs';
import { promptRequest } from '../load/request.mjs';
import { loadSideBySide } from '../load/side-by-side.mjs';
import { startNodeProvider } from '../provider/node.mjs';
import { median } from '../statistics.mjs';

/** Responses of one chunk show what a prompt costs by itself; the last row is a chat as agents have it. */
export const PROMPTS = [
  { kib: 1, chunks: 1 },
  { kib: 100, chunks: 1 },
  { kib: 400, chunks: 1 },
  { kib: 100, chunks: 300 },
];
/** Of each contender: the machine's loopback takes no more of the largest ones. */
const CONNECTIONS = 8;
const WARM_UP_MS = 10_000;

/**
 * @param starters [name, start] of each contender, which gets the bench
 * @returns for each of the prompts, in their order: µs of processor time per call by name, one of each repetition
 */
export async function measurePrompts(bench, starters, { reps, windowMs, say }) {
  const provider = await startNodeProvider(bench.workplace);
  const found = PROMPTS.map(() => Object.fromEntries(starters.map(([name]) => [name, []])));
  for (let rep = 1; rep <= reps; rep++) {
    const contenders = [];
    for (const [name, start] of rep % 2 === 0 ? starters.toReversed() : starters)
      contenders.push({ ...(await start({ ...bench, provider })), name, calls: 0 });
    const load = (prompt, forMs) =>
      loadSideBySide(contenders, { forMs, connections: CONNECTIONS }, (contender) =>
        promptRequest(contender, prompt.kib, prompt.chunks),
      );
    for (const prompt of [PROMPTS[1], PROMPTS.at(-1)]) await load(prompt, WARM_UP_MS);
    for (const [i, prompt] of PROMPTS.entries()) {
      const costs = await load(prompt, windowMs);
      contenders.forEach(({ name }, one) => found[i][name].push(costs[one]));
    }
    await compareRows(contenders);
    for (const { stop } of contenders) await stop();
    const last = (i) => Object.entries(found[i]).map(([name, all]) => `${name} ${all.at(-1).toFixed(0)} µs`);
    const told = PROMPTS.map(({ kib, chunks }, i) => `${kib} KiB, ${chunks} chunks: ${last(i).join(', ')}`);
    say(`prompts, repetition ${rep}: ${told.join('; ')}`);
  }
  await provider.stop();
  return found;
}

/** Rows of a table: the bare proxy, what a key adds to it, and what a budget and a list of models add to that. */
export function promptRows(version, found) {
  const added = (with_, without) => median(with_.map((one, i) => one - without[i])).toFixed(0);
  return PROMPTS.map(({ kib, chunks }, i) => {
    const { bare, key, budget } = found[i];
    const costs = [median(bare).toFixed(0), added(key, bare), added(budget, key)];
    return [version, String(kib), String(chunks), ...costs];
  });
}

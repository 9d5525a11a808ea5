// `npm run bench:compare -- <checkout> <checkout> …`: builds on one core, under the same load at the same time. Other
// programs on the machine slow them all down alike, so that small differences show, unlike in rounds one after the other.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startBare } from './contenders/bare.mjs';
import { startArgs, startGateway } from './contenders/postern.mjs';
import { compareRows } from './contenders/start-all.mjs';
import { withWorkplace } from './lifetime.mjs';
import { loadSideBySide, WARM_UP } from './load/side-by-side.mjs';
import { startProvider } from './provider/provider.mjs';
import { median, ratios } from './statistics.mjs';

const HELP = `Usage: npm run bench:compare -- [options] CHECKOUT …

Compares the processor time per call of built checkouts of Postern with that of the first one, and of the bare proxy, all
running on one core under the same load at the same time. Each repetition starts them again: two processes of one build differ by up to 5 %.
Every other repetition takes them in the reverse order. The same build twice shows what is left of chance.

  --reps N       repetitions (6)
  --seconds N    of each of the three rounds of a repetition (5)
  --node PATH    the Node.js to run them with (this one)`;
const ROUNDS = 3;
const MAX_MS = 3_600_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reps: { type: 'string', default: '6' },
    seconds: { type: 'string', default: '5' },
    node: { type: 'string', default: process.execPath },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || positionals.length < 1) {
  console.log(HELP);
  process.exit(values.help ? 0 : 1);
}
const checkouts = positionals.map((folder) => resolve(folder));

await withWorkplace(MAX_MS, run);

async function run({ workplace, postgres }) {
  const provider = await startProvider(workplace);
  const bench = { workplace, postgres, provider, node: values.node };
  const names = ['bare', ...checkouts.map((_, i) => `build ${i + 1}`)];
  console.log(checkouts.map((folder, i) => `build ${i + 1}: ${folder}`).join('\n'));
  const found = Object.fromEntries(names.map((name) => [name, []]));
  for (let rep = 1; rep <= Number(values.reps); rep++) {
    const starts = [
      () => startBare(bench),
      ...checkouts.map((folder, i) => () => startBuild(bench, folder, i + 1)),
    ];
    // The one that starts first gets the lower port, the first connection and the first call.
    const isReversed = rep % 2 === 0;
    const contenders = [];
    for (const start of inTurn(starts, isReversed)) contenders.push(await start());
    for (const contender of contenders) contender.calls = 0;
    // More builds share the core, so that each needs longer until its code is compiled.
    await loadSideBySide(contenders, { ...WARM_UP, forMs: (WARM_UP.forMs * contenders.length) / 4 });
    const rounds = [];
    for (let round = 0; round < ROUNDS; round++)
      rounds.push(await loadSideBySide(contenders, { forMs: Number(values.seconds) * 1_000 }));
    await compareRows(contenders);
    for (const { stop } of contenders) await stop();
    const costs = inTurn(
      contenders.map((_, i) => median(rounds.map((round) => round[i]))),
      isReversed,
    );
    names.forEach((name, i) => found[name].push(costs[i]));
    console.log(
      `repetition ${rep}: ${names.map((name, i) => `${name} ${costs[i].toFixed(1)} µs`).join(', ')}`,
    );
  }
  for (const [a, b] of [
    ...names.slice(1).map((name) => [name, 'bare']),
    ...names.slice(2).map((name) => [name, 'build 1']),
  ])
    console.log(`${a} / ${b}: ${spread(ratios(found[a], found[b]))}`);
}

function inTurn(list, isReversed) {
  return isReversed ? list.toReversed() : list;
}

function startBuild(bench, folder, number) {
  const { flags, entry } = startArgs(folder);
  return startGateway(bench, `build ${number}`, [...flags, entry]);
}

function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return `median ${median(sorted).toFixed(3)} (${sorted[0].toFixed(3)} to ${sorted.at(-1).toFixed(3)}, ${sorted.length} repetitions)`;
}

// `npm run bench:start -- <checkout> [<checkout>]`: what a start costs with a database that is already migrated, and what the
// gateway holds once it is idle. The builds take turns, so that other programs slow both down alike.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { withWorkplace } from './lifetime.mjs';
import { measureStart } from './start-cost.mjs';
import { median, ratios } from './statistics.mjs';

const HELP = `Usage: npm run bench:start -- [options] CHECKOUT [CHECKOUT]

Compares the starts of two built checkouts of Postern, with an existing database: processor time and time until it is
ready, its resident memory when it has been idle, and what it does then.

  --reps N          starts of each (8)
  --idle SECONDS    before its memory is read (3)
  --watch SECONDS   then, for its processor time and how often it wakes up (10)
  --rest SECONDS    after that, before its memory is read again (20)
  --node-arg ARG    before the entry, for each (repeatable)
  --node PATH       the Node.js to run them with (this one)`;
const MAX_MS = 1_800_000;
const WATCHED = [
  ['% of a core when idle', 'idlePercent', 2],
  ['wake-ups a second when idle', 'wakeUps', 1],
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reps: { type: 'string', default: '8' },
    idle: { type: 'string', default: '3' },
    watch: { type: 'string', default: '10' },
    rest: { type: 'string', default: '20' },
    'node-arg': { type: 'string', multiple: true, default: [] },
    node: { type: 'string', default: process.execPath },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || positionals.length < 1 || positionals.length > 2) {
  console.log(HELP);
  process.exit(values.help ? 0 : 1);
}

await withWorkplace(MAX_MS, run);

async function run({ workplace, postgres }) {
  const first = { node: values.node, nodeArgs: values['node-arg'], idleMs: 0 };
  const [idleMs, watchMs, restMs] = [values.idle, values.watch, values.rest].map((s) => Number(s) * 1_000);
  const how = { ...first, idleMs, watchMs, restMs };
  const builds = [];
  for (const [i, folder] of positionals.entries()) {
    const build = {
      name: `build ${i + 1}`,
      folder: resolve(folder),
      database: await postgres.createDatabase(),
    };
    console.log(`${build.name}: ${build.folder}`);
    // Migrations and the first key.
    await measureStart(workplace, build, first);
    builds.push({ ...build, starts: [] });
  }
  for (let rep = 0; rep < Number(values.reps); rep++)
    for (const build of builds) build.starts.push(await measureStart(workplace, build, how));
  const measures = [
    ['ms of processor time until ready', 'cpuMs'],
    ['ms until ready', 'wallMs'],
    ['MB resident when idle', 'idleMb'],
    ...(how.watchMs > 0 ? WATCHED : []),
    ['MB resident at rest', 'restMb'],
  ];
  for (const [what, field, digits = 0] of measures) {
    const found = builds.map(({ starts }) => starts.map((one) => one[field]));
    const medians = found.map((all, i) => `${builds[i].name} ${median(all).toFixed(digits)}`).join(', ');
    const ratio = found[1] ? `; build 2 / build 1 ${spread(ratios(found[1], found[0]))}` : '';
    console.log(`${what}: ${medians}${ratio}`);
  }
}

function spread(all) {
  const sorted = [...all].sort((a, b) => a - b);
  return `median ${median(sorted).toFixed(3)} (${sorted[0].toFixed(3)} to ${sorted.at(-1).toFixed(3)}, ${sorted.length} starts each)`;
}

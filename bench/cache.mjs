// `node bench/cache.mjs`, after `npm run build`: processor time that the response cache of a key adds to a call that is not
// in it, and what a call takes that is. One gateway; keys with and without a cache take turns.
import { parseArgs } from 'node:util';
import { createIn, startWithKey } from './contenders/keyed.mjs';
import { withWorkplace } from './lifetime.mjs';
import { startProvider } from './provider/provider.mjs';
import { table } from './report.mjs';
import { CACHE_COLUMNS, cacheRow, measureCache } from './scenarios/cache.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, calls: { type: 'string', default: '400' } },
});

await withWorkplace(3_600_000, async ({ workplace, postgres }) => {
  const bench = { workplace, postgres, provider: await startProvider(workplace) };
  const [rounds, calls] = [Number(values.rounds), Number(values.calls)];
  const found = await measureCache(bench, { rounds, calls, say: console.error });
  console.log(table(CACHE_COLUMNS, [cacheRow(process.version, found)]));
});

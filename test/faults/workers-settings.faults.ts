import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { Site } from '../support/site.js';
import { workersOf } from '../support/workers.js';
import type { Workplace } from '../support/workplace.js';

let site: Site;
let workplace: Workplace;
beforeEach(async () => {
  site = await Site.make({ script: () => {} });
  ({ workplace } = site);
});
afterEach(() => site.remove());

const LAST = 'ffffffff-ffff-7fff-bfff-ffffffffffff';

const writeEnv = (lines: string[]) => writeFile(join(workplace.folder, '.env'), lines.join('\n'));

/** The latest journal of each worker, by its number. */
async function journals(): Promise<Map<number, string>> {
  const names = await readdir(join(workplace.dataDir, 'journal'));
  const runs = names.filter((name) => !name.startsWith('reserve'));
  return new Map(runs.sort().map((name) => [Number(name.split('.')[1] ?? 1), name]));
}

// With fewer workers it would take the others' journals for those of dead ones; with an invalid setting it could not start.
it('gives a worker that takes the place of a dead one the settings of the start, whatever .env says by now', async () => {
  await writeEnv(['WORKERS=3', 'SHUTDOWN_GRACE_MS=1000']);
  const gateway = site.gateway();
  await gateway.ready();
  const before = await journals();
  // Comes last among the journals to be brought to Postgres: once it is gone, every other has been looked at.
  await mkdir(join(workplace.dataDir, 'journal', LAST));
  await writeEnv(['WORKERS=2', 'SHUTDOWN_GRACE_MS=soon']);
  const [first] = await workersOf(gateway.process.pid);
  process.kill(first!, 'SIGKILL');
  await gateway.process.until(/worker 1 was killed by SIGKILL; starting another/);
  const after = await eventually(async () => {
    const now = await journals();
    return ![...now.values()].includes(LAST) && now;
  });
  expect([after.get(2), after.get(3)]).toEqual([before.get(2), before.get(3)]);
  expect(await workersOf(gateway.process.pid)).toHaveLength(3);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  expect(gateway.process.stderr).toBe('');
});

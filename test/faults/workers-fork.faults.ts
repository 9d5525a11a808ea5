import { copyFile, link, rename } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { bareEnvironment, Process } from '../support/process.js';
import { Site } from '../support/site.js';
import { workersOf } from '../support/workers.js';
import type { Workplace } from '../support/workplace.js';

const MAIN = resolve(__dirname, '../../dist/src/start.js');

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
beforeEach(async () => {
  site = await Site.make();
  ({ database, workplace } = site);
});
afterEach(() => site.remove());

it('serves on while no process can be started in the place of one that died, and tries again', async () => {
  // As when Node itself is being replaced.
  const node = join(workplace.folder, 'node');
  await link(process.execPath, node).catch(() => copyFile(process.execPath, node));
  const gateway = new Process(node, [MAIN], {
    cwd: workplace.folder,
    env: {
      ...bareEnvironment(),
      DATABASE_URL: database.url,
      DATA_DIR: workplace.dataDir,
      PORT: '0',
      WORKERS: '2',
    },
  });
  const [, url] = await gateway.until(/^postern: ready on (\S+)$/m);
  await rename(node, `${node}.away`);
  const [first, second] = await workersOf(gateway.pid);
  process.kill(second!, 'SIGKILL');
  await gateway.until(/worker 2 could not be started \(spawn \S+ ENOENT\); starting another/);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  expect(await workersOf(gateway.pid)).toEqual([first]);
  await rename(`${node}.away`, node);
  await eventually(async () => (await workersOf(gateway.pid)).length === 2);
  gateway.signal('SIGTERM');
  expect(await gateway.ended).toEqual({ code: 0, signal: null });
});

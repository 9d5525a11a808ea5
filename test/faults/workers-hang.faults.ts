import { Site } from '../support/site.js';
import { isAlive } from '../support/workplace.js';
import { workersOf } from '../support/workers.js';

/** As deploy/ has it: what a service manager waits for after the delay and the grace. */
const PATIENCE_MS = 15_000;

let site: Site;
let workers: number[] = [];
beforeAll(async () => {
  site = await Site.make();
});
afterAll(async () => {
  // One that is stopped does not notice that its primary is gone.
  for (const pid of workers.filter(isAlive)) process.kill(pid, 'SIGKILL');
  await site.remove();
});

it('ends in time although a worker hangs, and says which', async () => {
  const gateway = site.gateway({ WORKERS: '2', SHUTDOWN_GRACE_MS: '0' });
  await gateway.ready();
  workers = await workersOf(gateway.process.pid);
  process.kill(workers[1]!, 'SIGSTOP');
  const begun = performance.now();
  expect(await gateway.stop()).toEqual({ code: 1, signal: null });
  expect(performance.now() - begun).toBeLessThan(PATIENCE_MS);
  expect(gateway.process.stderr).toMatch(
    /^postern: worker 2 did not exit within 13 s after the grace and was killed/m,
  );
  expect(workers.some(isAlive)).toBe(false);
});

import { eventually } from '../support/eventually.js';
import { createHook } from 'node:async_hooks';
import { startTestGateway } from '../support/gateway.js';
import { Scrape } from '../observability/scrape.js';

/** A second, of all timers that repeat. A single one of 100 ms would be 10 more. */
const MAX_WAKE_UPS = 8;

/** The sampler of monitorEventLoopDelay(), which wakes the process every 10 ms. */
const SAMPLER = 'ELDHISTOGRAM';

interface Timer {
  _repeat: number | null;
  _destroyed: boolean;
}

const timers: Timer[] = [];
let samplers = 0;
const hook = createHook({
  init(_id, type, _trigger, resource) {
    if (type === 'Timeout') timers.push(resource as Timer);
    if (type === SAMPLER) samplers++;
  },
});
beforeAll(() => void hook.enable());
afterAll(() => void hook.disable());

it('wakes up a few times a second when nobody calls, and samples its event loop once it is scraped', async () => {
  const postern = await startTestGateway();
  const repeating = timers.filter((timer) => timer._repeat !== null && !timer._destroyed);
  const wakeUps = repeating.reduce((sum, { _repeat: ms }) => sum + 1_000 / ms!, 0);
  expect(repeating.length).toBeGreaterThan(10);
  expect(wakeUps).toBeLessThan(MAX_WAKE_UPS);
  expect(samplers).toBe(0);

  await Scrape.of(postern.url);
  expect(samplers).toBe(1);
  // A scrape that comes before the next sample has none.
  await eventually(async () =>
    /^nodejs_eventloop_lag_p99_seconds 0\.\d+$/m.test((await Scrape.of(postern.url)).text),
  );
  expect(samplers).toBe(1);
});

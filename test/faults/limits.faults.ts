import { Replicas } from '../limits/replicas.js';

const MINUTE_MS = 60_000;
const LIMIT = 600;

let replicas: Replicas;
beforeAll(async () => {
  replicas = await Replicas.start(4);
});
afterAll(() => replicas.stop());

it('forwards never more than 600 calls in any 60 seconds from four replicas, and at least 540', async () => {
  const { key } = await replicas.issue({ limits: { requests_per_minute: LIMIT } });
  const { arrivals } = replicas;
  // Calls from before the limit was in force.
  arrivals.length = 0;
  const until = performance.now() + 130_000;
  await replicas.load(key, 4, () => performance.now() < until);
  let most = 0;
  let first = 0;
  arrivals.forEach((time, last) => {
    while (time - arrivals[first]! >= MINUTE_MS) first++;
    most = Math.max(most, last - first + 1);
  });
  const inFirst = arrivals.filter((time) => time - arrivals[0]! < MINUTE_MS).length;
  const seconds = (arrivals.at(-1)! - arrivals[0]!) / 1_000;
  process.stdout.write(
    `${arrivals.length} calls in ${Math.round(seconds)} s, at most ${most} in 60 s, ${inFirst} in the first\n`,
  );
  expect(most).toBeLessThanOrEqual(LIMIT);
  expect(inFirst).toBeGreaterThanOrEqual(540);
}, 400_000);

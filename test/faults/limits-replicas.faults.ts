import { eventually, soon, timePasses } from '../support/eventually.js';
import { FULL } from '../support/scale.js';
import { Replicas } from '../support/replicas.js';
import { USD } from '../limits/rules.js';

// Four gateway processes as they are built, with 50 calls in flight each.

const IN_FLIGHT = 50;
const BUDGET = 20n * USD;
/** What a call costs at most: 1,000 output tokens. */
const MOST = USD / 50n;

let replicas: Replicas;
beforeAll(async () => {
  replicas = await Replicas.start(4);
});
afterAll(() => replicas.stop());
beforeEach(() => {
  replicas.call = () => ({ output: Math.floor(Math.random() * 1_001), ms: 5 + Math.random() * 30 });
});

const budget = (more: object = {}) => ({ budgets: [{ usd: '20', period: 'month', ...more }] });
const say = (text: string) => void process.stdout.write(`${text}\n`);

it('spends a budget with 200 calls in flight, and exceeds it by at most 1 %', async () => {
  const { id, key } = await replicas.issue(budget());
  const outcome = await replicas.load(key, IN_FLIGHT);
  expect([...outcome.rejected.keys()]).toEqual(['insufficient_quota']);
  expect(outcome.broken).toBe(0);
  const { charged, spent } = await replicas.settledBooks(id);
  say(`typical: ${outcome.forwarded} calls, ${Number(spent) / 1e9} of 20 USD`);
  expect(spent).toBe(charged);
  expect(spent).toBeLessThanOrEqual(BUDGET + BUDGET / 100n);
  // A call is rejected only if what is left does not cover it.
  expect(spent).toBeGreaterThan(BUDGET - BUDGET / 50n);
});

it('never exceeds a budget whose calls reserve the most that they can cost', async () => {
  const { id, key } = await replicas.issue(budget({ reservation: 'worst' }));
  const { forwarded } = await replicas.load(key, IN_FLIGHT);
  const { charged, spent } = await replicas.settledBooks(id);
  say(`worst: ${forwarded} calls, ${Number(spent) / 1e9} of 20 USD`);
  expect(spent).toBe(charged);
  expect(spent).toBeLessThanOrEqual(BUDGET);
  expect(spent).toBeGreaterThan(BUDGET - BUDGET / 50n);
});

it('never has more than 20 calls at once, and has them when they are wanted', async () => {
  const { key } = await replicas.issue({ limits: { concurrent_requests: 20 } });
  // Long enough to overlap, also if a busy machine takes long to hand out a slot.
  replicas.call = () => ({ output: 1, ms: 200 });
  replicas.most = 0;
  const until = performance.now() + (FULL ? 60_000 : 6_000);
  const outcome = await replicas.load(key, 15, () => performance.now() < until);
  say(`slots: ${outcome.forwarded} calls, at most ${replicas.most} at once`);
  expect([...outcome.rejected.keys()]).toEqual(['rate_limit_exceeded']);
  expect(replicas.most).toBeLessThanOrEqual(20);
  expect(replicas.most).toBeGreaterThanOrEqual(15);
});

it('has a changed limit in force everywhere within a second', async () => {
  const { id, key } = await replicas.issue({ limits: { requests_per_minute: 100_000 } });
  for (const usd of ['0', '1']) {
    await replicas.admin('PATCH', `/keys/${id}`, { budgets: [{ usd, period: 'day' }] });
    const began = performance.now();
    for (const { url } of replicas.all)
      await soon(async () => (await replicas.send(url, key)).status === (usd === '0' ? 402 : 200));
    say(`a changed budget was in force on four replicas after ${Math.round(performance.now() - began)} ms`);
  }
});

it('spends what is held while Postgres is unreachable, then rejects calls with 503, and charges everything afterwards', async () => {
  const { id, key } = await replicas.issue(budget({ usd: '10' }));
  const trouble = (async () => {
    await eventually(async () => (await replicas.books(id)).spent > 2n * USD);
    await replicas.setReachable(false);
    await timePasses(12_000, 'the outage');
    await replicas.setReachable(true);
  })();
  const outcome = await replicas.load(key, 10, (code) => {
    return code === null || code === 'limits_unavailable';
  });
  await trouble;
  expect([...outcome.rejected.keys()].sort()).toEqual(['insufficient_quota', 'limits_unavailable']);
  const { charged, spent } = await replicas.settledBooks(id);
  say(`outage: ${outcome.forwarded} calls, ${Number(spent) / 1e9} of 10 USD`);
  expect(spent).toBe(charged);
  expect(spent).toBeLessThanOrEqual(10n * USD + BUDGET / 100n);
  expect(spent).toBeGreaterThan(10n * USD - 20n * MOST);
});

it('counts to the billionth of a dollar what the log has, after two of four were killed', async () => {
  const { id, key } = await replicas.issue(budget());
  const running = replicas.load(key, IN_FLIGHT);
  await eventually(async () => (await replicas.books(id)).spent > 2n * USD);
  await replicas.kill(0);
  await eventually(async () => (await replicas.books(id)).spent > 4n * USD);
  await replicas.kill(1);
  const outcome = await running;
  expect(outcome.broken).toBeGreaterThan(0);
  // The second moves to the first place when the first has left it.
  await replicas.restart(0);
  await replicas.restart(0);
  const { charged, spent } = await replicas.settledBooks(id);
  const [interrupted] = await replicas.database.query<{ count: number; least: string }>(
    `SELECT count(*)::int, min(charge_usd)::text AS least FROM request_log WHERE outcome = 'interrupted' AND key_id = $1`,
    [id],
  );
  say(
    `killed: ${outcome.forwarded} calls, ${interrupted!.count} interrupted, ${Number(spent) / 1e9} of 20 USD`,
  );
  // They are charged what they had reserved.
  expect(interrupted!.count).toBeGreaterThan(0);
  expect(Number(interrupted!.least)).toBeGreaterThan(0);
  expect(spent).toBe(charged);
  expect(spent).toBeLessThanOrEqual(BUDGET + BUDGET / 100n);
});

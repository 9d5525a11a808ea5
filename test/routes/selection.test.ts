import { chooseTarget, hashOf, makeRoute, type RouteSettings } from '../../src/routes/route.js';
import { RetryBudget } from '../../src/routes/retry-budget.js';
import { retryAfterOf, TargetHealth } from '../../src/routes/target-health.js';

const SETTINGS: RouteSettings = {
  name: 'main',
  targets: ['a', 'b', 'c'].map((provider) => ({ provider, models: null })),
  strategy: 'order',
  retry_on: [],
  max_attempts: 2,
  dialect: 'any',
  is_default: false,
};

describe('the health of a target', () => {
  it('rests for as long as the target says, between 1 and 60 seconds, and then has one call probe it', () => {
    for (const [asked, rest] of [
      [10, 1_000],
      [7_000, 7_000],
      [600_000, 60_000],
    ] as const) {
      const health = new TargetHealth();
      health.refused(health.begin(0), 0, asked);
      expect([health.isAvailable(rest - 1), health.isAvailable(rest)]).toEqual([false, true]);
      const probe = health.begin(rest);
      expect(health.isAvailable(rest)).toBe(false);
      health.succeeded(probe);
      expect(health.isAvailable(rest)).toBe(true);
    }
  });

  it('rests after three failures in a row, for 5 seconds and then twice as long, up to 60', () => {
    const health = new TargetHealth();
    const fail = (now: number) => health.failed(health.begin(now), now);
    fail(0);
    fail(0);
    health.succeeded(health.begin(0));
    fail(0);
    fail(0);
    expect(health.isAvailable(0)).toBe(true);
    fail(0);
    let now = 0;
    for (const rest of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      expect([health.isAvailable(now + rest - 1), health.isAvailable(now + rest)]).toEqual([false, true]);
      now += rest;
      fail(now);
    }
  });

  it('takes calls that fail together for one failure, and learns nothing from calls before its rest', () => {
    const health = new TargetHealth();
    const begun = Array.from({ length: 10 }, () => health.begin(0));
    for (const one of begun) health.failed(one, 0);
    expect(health.isAvailable(5_000)).toBe(true);
    const old = begun[0]!;
    health.refused(health.begin(5_000), 5_000, 9_000);
    health.succeeded(old);
    expect(health.isAvailable(13_999)).toBe(false);
  });

  it('has another call probe it when the first one shows nothing', () => {
    const health = new TargetHealth();
    health.refused(health.begin(0), 0, 1_000);
    health.ended(health.begin(1_000));
    expect(health.isAvailable(1_000)).toBe(true);
  });

  it('has another call probe it when the first one has no response after 10 seconds', () => {
    const health = new TargetHealth();
    health.refused(health.begin(0), 0, 1_000);
    const slow = health.begin(1_000);
    expect([health.isAvailable(10_999), health.isAvailable(11_000)]).toEqual([false, true]);
    health.begin(11_000);
    expect(health.isAvailable(11_000)).toBe(false);
    health.succeeded(slow);
    expect(health.isAvailable(11_000)).toBe(true);
  });

  it.each([
    ['1500', '3', 1_500],
    [undefined, '3', 3_000],
    [undefined, new Date(120_000).toUTCString(), 20_000],
    [undefined, 'soon', null],
    [undefined, undefined, null],
  ])('reads retry-after-ms %s and retry-after %s', (milliseconds, seconds, expected) => {
    expect(retryAfterOf(milliseconds, seconds, 100_000)).toBe(expected);
  });
});

describe('the budget of retries', () => {
  it('is a fifth of the calls of the last ten seconds, but always ten', () => {
    const budget = new RetryBudget();
    const taken = (now: number) => {
      let count = 0;
      while (budget.take(now)) count++;
      return count;
    };
    expect(taken(1_000_000)).toBe(10);
    expect(taken(1_009_999)).toBe(0);
    expect(taken(1_010_000)).toBe(10);
    for (let i = 0; i < 1_000; i++) budget.called(1_015_000 + i);
    expect(taken(1_016_000)).toBe(190);
    expect(taken(1_024_999)).toBe(10);
    expect(taken(1_100_000)).toBe(10);
  });
});

describe('the choice of a target', () => {
  const rest = (route: ReturnType<typeof makeRoute>, i: number) => {
    const { health } = route.targets[i]!;
    health.refused(health.begin(0), 0, 60_000);
  };

  it('is the first that does not rest and had no attempt; if all rest, the first', () => {
    const route = makeRoute(SETTINGS, undefined);
    expect(chooseTarget(route, 0, 0, 0, true)).toBe(0);
    expect(chooseTarget(route, 0b1, 0, 0, true)).toBe(1);
    rest(route, 0);
    expect(chooseTarget(route, 0, 0, 0, true)).toBe(1);
    rest(route, 1);
    rest(route, 2);
    expect([chooseTarget(route, 0, 0, 0, true), chooseTarget(route, 0, 0, 0, false)]).toEqual([0, -1]);
    expect(chooseTarget(route, 0b111, 0, 0, true)).toBe(-1);
  });

  it('spreads evenly, and moves only the sessions of a target that rests', () => {
    const route = makeRoute({ ...SETTINGS, strategy: 'spread' }, undefined);
    const sessions = Array.from({ length: 3_000 }, (_, i) => hashOf(`session-${i}`));
    const before = sessions.map((hash) => chooseTarget(route, 0, hash, 0, true));
    for (let i = 0; i < 3; i++) expect(before.filter((at) => at === i).length).toBeGreaterThan(800);
    rest(route, 1);
    const after = sessions.map((hash) => chooseTarget(route, 0, hash, 0, true));
    expect(after.filter((at, i) => before[i] !== 1 && at !== before[i])).toEqual([]);
    expect(after).not.toContain(1);
  });

  it('keeps what is known about targets when a route changes', () => {
    const route = makeRoute(SETTINGS, undefined);
    rest(route, 0);
    expect(chooseTarget(makeRoute({ ...SETTINGS, max_attempts: 3 }, route), 0, 0, 0, true)).toBe(1);
  });
});

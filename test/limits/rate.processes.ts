import { createDatabase, type TestDatabase } from '../support/database.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { FULL } from '../support/scale.js';
import { addRule, KEY, TEAM } from './rules.js';
import { spend } from './spenders.js';

setPatience(20);

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase();
});
afterEach(() => database.drop());

const MINUTE_MS = 60_000;
const work = { teamId: TEAM, keyId: KEY } as const;
const settings = () => Array.from({ length: 4 }, () => ({ databaseUrl: database.url }));

/** The most of these times that lie within any 60 seconds. */
function mostInAMinute(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  times.forEach((time, last) => {
    while (time - times[first]! >= MINUTE_MS) first++;
    most = Math.max(most, last - first + 1);
  });
  return most;
}

/** The most of these intervals that overlap. */
function mostAtOnce(intervals: readonly (readonly [number, number])[]): number {
  const changes = intervals.flatMap(([from, to]): [number, number][] => [
    [from, 1],
    [to, -1],
  ]);
  // An end that is not later than a start comes first: both clocks are the same.
  changes.sort(([a, x], [b, y]) => a - b || x - y);
  let now = 0;
  let most = 0;
  for (const [, change] of changes) most = Math.max(most, (now += change));
  return most;
}

/** A full run sees windows end; a short one, that the processes share one window and use it up. */
never(
  'admits no more than 600 requests in any 60 seconds, and most of them, from four processes',
  async () => {
    await addRule(database, 'requests', 'minute', 600);
    const spenders = await spend(settings(), {
      ...work,
      kind: 'rate',
      inFlight: 4,
      callMs: 20,
      forMs: FULL ? 200_000 : 15_000,
    });
    const reports = await Promise.all(spenders.map(({ done }) => done));
    expect(reports.flatMap((report) => report!.errors)).toEqual([]);
    const times = reports
      .flatMap((report) => report!.times.map(([admitted]) => admitted))
      .sort((a, b) => a - b);
    expect(mostInAMinute(times)).toBeLessThanOrEqual(600);
    // The first minute, and in a long run the average of all.
    const first = times.filter((time) => time - times[0]! < MINUTE_MS).length;
    expect(first).toBeGreaterThanOrEqual(540);
    const seconds = (times.at(-1)! - times[0]!) / 1_000;
    if (FULL) expect(times.length / (seconds / 60)).toBeGreaterThanOrEqual(540);
  },
);

it('never has more than 20 calls at once in four processes, and has them when they are wanted', async () => {
  await addRule(database, 'concurrent_requests', 'at_once', 20);
  const spenders = await spend(settings(), {
    ...work,
    kind: 'slots',
    inFlight: 15,
    callMs: 50,
    forMs: FULL ? 60_000 : 20_000,
  });
  const reports = await Promise.all(spenders.map(({ done }) => done));
  expect(reports.flatMap((report) => report!.errors)).toEqual([]);
  const intervals = reports.flatMap((report) => report!.times);
  const most = mostAtOnce(intervals);
  expect(most).toBeLessThanOrEqual(20);
  // 60 calls compete for them.
  expect(most).toBeGreaterThanOrEqual(18);
});

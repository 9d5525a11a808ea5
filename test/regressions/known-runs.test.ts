import {
  aliveIn,
  compareRuns,
  knownFrom,
  type KnownRun,
  type RunRow,
} from '../../src/regressions/known-runs.js';
import { RollCall } from '../../src/regressions/roll-call.js';

const NOW = Date.parse('2026-11-26T12:00:00Z');
const DAY = 86_400_000;

function run(name: string, seq: number, at: number, server: string | null = 'a'): KnownRun {
  return { run: name, seq: BigInt(seq), at: NOW + at, since: NOW + at - DAY, server };
}

const mapOf = (...runs: KnownRun[]): Map<string, KnownRun> => new Map(runs.map((one) => [one.run, one]));

describe('what a process knows, compared with what Postgres has', () => {
  it('is lost where a seq is lower, since the least of the times that survived', () => {
    const known = mapOf(run('a', 10, 0), run('b', 5, -1_000), run('c', 7, -DAY));
    const found = mapOf(run('a', 8, -4_000), run('b', 4, -6_000), run('c', 7, -DAY));
    const { lost, from, gap, isSame } = compareRuns(known, found, NOW + 30_000);
    expect([...lost.keys()]).toEqual(['a', 'b']);
    expect(lost.get('a')).toEqual({ surviving: '8', acknowledged: '10' });
    expect({ from, gap, isSame }).toEqual({ from: NOW - 6_000, gap: 6_000, isSame: true });
  });

  it('is not lost where the clock of Postgres went back or forward', () => {
    const known = mapOf(run('a', 10, 0), run('b', 5, -DAY));
    for (const shift of [-30 * DAY, 30 * DAY]) {
      const found = mapOf(run('a', 11, shift), run('b', 5, -DAY));
      expect(compareRuns(known, found, NOW + shift).lost.size).toBe(0);
    }
  });

  it('is lost where the row of a run is not there, but not of one that ended a week ago', () => {
    const known = mapOf(run('a', 10, 0), run('b', 5, 0), run('old', 5, -7 * DAY));
    const { lost, isSame } = compareRuns(known, mapOf(run('a', 10, 0)), NOW);
    expect([...lost.keys()]).toEqual(['b']);
    expect(isSame).toBe(true);
  });

  it('is of another database where no run is there', () => {
    expect(compareRuns(mapOf(run('a', 10, 0)), new Map(), NOW).isSame).toBe(false);
    expect(compareRuns(mapOf(run('a', 10, 0)), mapOf(run('x', 1, 0)), NOW).isSame).toBe(false);
    // A process that slept for a week.
    expect(compareRuns(mapOf(run('a', 10, -8 * DAY)), new Map(), NOW).isSame).toBe(true);
    expect(compareRuns(new Map(), mapOf(run('x', 1, 0)), NOW).isSame).toBe(true);
  });
});

it('a run that has ended is known for a week more, although it is not read again', () => {
  const known = mapOf(run('a', 10, 0), run('ended', 5, -3_000_000, null), run('older', 5, -7 * DAY, null));
  const next = knownFrom(known, mapOf(run('a', 11, 2_000), run('new', 1, 2_000)), false, NOW + 2_000);
  expect([...next.keys()]).toEqual(['a', 'new', 'ended']);
  expect(next.get('a')).toMatchObject({ seq: 11n, since: NOW - DAY });
  // Where all were asked for, it is lost.
  expect([...knownFrom(known, mapOf(run('a', 11, 0)), true, NOW).keys()]).toEqual(['a']);
});

describe('the roll call', () => {
  it('expects the runs that lived when the server before was there, not those that had ended', () => {
    const runs = [run('a', 1, 0), run('b', 1, -14_000), run('dead', 1, -16_000), run('ended', 1, 0, null)];
    expect(aliveIn(runs).map(({ run: name }) => name)).toEqual(['a', 'b']);
    expect(aliveIn([])).toEqual([]);
  });

  it('is over when each of them has answered, or has ended', () => {
    const call = new RollCall();
    const found = mapOf(run('a', 1, 0, 'old'), run('b', 1, 0, 'old'));
    call.begin('new', [...found.values()], [...found.values()]);
    const answers = (...rows: RunRow[]) => call.update(new Map(rows.map((one) => [one.run, one])));
    expect(answers(run('a', 2, 0, 'new'), run('b', 1, 0, 'old'))).toBeNull();
    expect(call.isComplete).toBe(false);
    // Of a run whose row was lost, nothing is known yet.
    expect(answers(run('a', 3, 0, 'new'))).toBeNull();
    expect(answers(run('a', 3, 0, 'new'), run('b', 1, 0, null), run('dead', 1, 0, 'older'))).toEqual([
      'dead',
    ]);
    expect(call.isComplete).toBe(true);
  });

  it('expects nobody on a server on which all have answered', () => {
    const call = new RollCall();
    const found = mapOf(run('a', 1, 0, 'same'), run('b', 1, 0, 'same'));
    call.begin('same', [], [...found.values()]);
    expect(call.update(found)).toEqual([]);
    expect(call.isComplete).toBe(true);
  });
});

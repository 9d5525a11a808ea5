import type { LostRun } from './database-regression.entity.js';
import type { Comparison, RunRow } from './known-runs.js';
import type { Regression } from './regression.js';
import type { RunCounter } from './run-counter.js';

/**
 * The runs that have lost something, with this one: if it has not put back everything, it has lost the rest on the next
 * server too.
 *
 * @param row of this run as it has survived
 * @param isPending whether this run has not put back everything
 */
export function lostRuns(
  lost: ReadonlyMap<string, LostRun>,
  row: RunRow | undefined,
  { run, acknowledged, hasUncounted, lowest }: RunCounter,
  isPending: boolean,
): Map<string, LostRun> {
  const all = new Map(lost);
  const counted = row?.seq ?? 0n;
  const surviving = lowest !== null && lowest.seq < counted ? lowest.seq : counted;
  const known = acknowledged + (hasUncounted ? 1n : 0n);
  if (lowest !== null || all.has(run) || (isPending && surviving < known))
    all.set(run, { surviving: surviving.toString(), acknowledged: known.toString() });
  return all;
}

/**
 * @param row of this run as it has survived
 * @param newest when a run was counted last, ms since 1970
 * @param pending what this run has not put back
 * @returns when the lost time begins, in ms since 1970, and how many ms it is
 */
export function lostTime(
  { from, gap }: Comparison,
  row: RunRow | undefined,
  newest: number,
  { lowest }: RunCounter,
  pending: Regression | undefined,
): [number, number] {
  const starts = [from, row?.at, lowest?.at, pending?.from?.getTime()];
  const first = Math.min(...starts.filter((at): at is number => at !== undefined && Number.isFinite(at)));
  return [first, Math.max(gap, newest - first, pending?.gapMs ?? 0)];
}

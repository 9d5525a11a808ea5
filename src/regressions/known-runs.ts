import type { LostRun } from './database-regression.entity.js';

/** A row of gateway_run. */
export interface RunRow {
  readonly run: string;
  readonly seq: bigint;
  /** Milliseconds since 1970, of Postgres's clock. */
  readonly at: number;
  /** Null: it has ended, or did not respond. */
  readonly server: string | null;
}

/** What a process knows of a run. */
export interface KnownRun extends RunRow {
  /** `at` when this process read its row for the first time. */
  readonly since: number;
}

/** Rows of runs that ended are removed after this. */
export const KEEP_RUNS_MS = 7 * 24 * 3_600_000;
/** A run that wrote so long before the newest one still lives. */
export const ALIVE_MS = 15_000;

export interface Comparison {
  /** Postgres has a row of a known run, or none was known: it is the same database. */
  readonly isSame: boolean;
  /** The runs of which it has less than what it had acknowledged. */
  readonly lost: ReadonlyMap<string, LostRun>;
  /** What was written from then on may be lost; ms since 1970. Not a number if nothing was. */
  readonly from: number;
  /** Milliseconds from then to the newest known row. */
  readonly gap: number;
}

/** Compares what is in Postgres with what this process knows. @param now of Postgres's clock, ms since 1970 */
export function compareRuns(
  known: ReadonlyMap<string, KnownRun>,
  found: ReadonlyMap<string, RunRow>,
  now: number,
): Comparison {
  const lost = new Map<string, LostRun>();
  let from = Infinity;
  let newest = -Infinity;
  let expected = 0;
  let present = 0;
  for (const { run, seq, at, since } of known.values()) {
    newest = Math.max(newest, at);
    const row = found.get(run);
    // Removed, of a run that ended, or of this process if it slept.
    if (row === undefined && now - at >= KEEP_RUNS_MS - 3_600_000) continue;
    expected++;
    if (row !== undefined) present++;
    if (row !== undefined && row.seq >= seq) continue;
    lost.set(run, { surviving: String(row?.seq ?? 0n), acknowledged: String(seq) });
    from = Math.min(from, row?.at ?? since);
  }
  const isSame = expected === 0 || present > 0;
  return lost.size === 0
    ? { isSame, lost, from: NaN, gap: 0 }
    : { isSame, lost, from, gap: Math.max(newest - from, 0) };
}

/** The runs that may live: not those that have ended. */
export function aliveIn(runs: Iterable<RunRow>): RunRow[] {
  const running = [...runs].filter(({ server }) => server !== null);
  const newest = Math.max(...running.map(({ at }) => at));
  return running.filter(({ at }) => newest - at <= ALIVE_MS);
}

/**
 * @param found as they are in Postgres now
 * @param isAll whether every known run was asked for
 * @returns what is known from now on: of runs that had ended before too, because Postgres may still lose what they wrote
 */
export function knownFrom(
  known: ReadonlyMap<string, KnownRun>,
  found: ReadonlyMap<string, RunRow>,
  isAll: boolean,
  now: number,
): Map<string, KnownRun> {
  const next = new Map<string, KnownRun>();
  for (const [run, row] of found) next.set(run, { ...row, since: known.get(run)?.since ?? row.at });
  if (!isAll) for (const [run, row] of known) if (row.server === null && !next.has(run)) next.set(run, row);
  for (const [run, { server, at }] of next) if (server === null && now - at >= KEEP_RUNS_MS) next.delete(run);
  return next;
}

export function without<T>(map: ReadonlyMap<string, T>, key: string): Map<string, T> {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}

/** @returns what is known of other runs, and of the own one */
export function split(
  lost: ReadonlyMap<string, LostRun>,
  run: string,
): [Record<string, LostRun>, Record<string, LostRun>] {
  const others = without(lost, run);
  const own = lost.get(run);
  return [Object.fromEntries(others), own === undefined ? {} : { [run]: own }];
}

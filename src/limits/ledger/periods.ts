import type { Period } from './meter.js';
import type { LimitRule } from './rule-set.js';

/** A period as migrations/functions/limit_windows.sql returns it. */
export type Window = [period: string, timeZone: string, starts: number, ends: number, begins: number];

/** Periods of `total` and `session`, of rates and of concurrency. */
const ALWAYS: Period = { starts: 0, begins: 0, ends: Infinity };
const WITHOUT_END: ReadonlySet<LimitRule['period']> = new Set(['total', 'session', 'minute', 'at_once']);
const MOST = 100;
/** In every time zone, periods begin at a quarter of an hour. */
const QUARTER_MS = 15 * 60_000;

/**
 * The days, weeks and months of the time zones in use, as Postgres has computed them: the log writer's statement computes
 * them there too, and two versions of the time zone database may differ.
 */
export class Periods {
  private readonly known = new Map<string, Period[]>();
  private readonly unknown = new Map<string, [period: string, timeZone: string, at: number]>();

  /** The period of a rule at a time. Null: the next exchange asks for it. */
  of(rule: LimitRule, at: number): Period | null {
    if (!hasPeriods(rule)) return ALWAYS;
    const { period, timeZone } = rule;
    const name = `${period} ${timeZone}`;
    for (const one of this.known.get(name) ?? []) if (isIn(at, one)) return one;
    // Calls of the same quarter of an hour are in the same period: during an outage they ask once, not each for itself.
    this.unknown.set(`${name} ${Math.floor(at / QUARTER_MS)}`, [period, timeZone, at]);
    return null;
  }

  /** What the next exchange asks for. */
  asked(): [period: string, timeZone: string, at: number][] {
    return [...this.unknown.values()];
  }

  add(windows: readonly Window[]): void {
    for (const [period, timeZone, starts, ends, begins] of windows) {
      const name = `${period} ${timeZone}`;
      const added = { starts, begins, ends };
      const others = (this.known.get(name) ?? []).filter((one) => one.begins !== begins);
      // The newest first: most calls are in it.
      const all = [added, ...others].sort((a, b) => b.begins - a.begins);
      this.known.set(name, all.slice(0, MOST));
      for (const [key, [p, z, at]] of this.unknown)
        if (p === period && z === timeZone && isIn(at, added)) this.unknown.delete(key);
    }
  }
}

/** Whether a rule has one period after the other. */
export function hasPeriods({ period }: Pick<LimitRule, 'period'>): boolean {
  return !WITHOUT_END.has(period);
}

export function isIn(at: number, { begins, ends }: Period): boolean {
  return at >= begins && at < ends;
}

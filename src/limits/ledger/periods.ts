import type { Period } from './meter.js';
import type { LimitRule } from './rule-cache.js';

/** Periods of `total`, of rates and of concurrency. */
const ALWAYS: Period = { starts: 0, ends: Infinity };
const MOST = 100;

/**
 * The days, weeks and months of the time zones in use, as Postgres has computed them: the log writer's statement computes
 * them there too, and two versions of the time zone database may differ.
 */
export class Periods {
  private readonly known = new Map<string, Period[]>();
  private readonly unknown = new Map<string, [period: string, timeZone: string, at: number]>();

  /** The period of a rule at a time. Null: the next exchange asks for it. */
  of({ period, timeZone }: LimitRule, at: number): Period | null {
    if (period === 'total' || period === 'minute' || period === 'at_once') return ALWAYS;
    const name = `${period} ${timeZone}`;
    for (const one of this.known.get(name) ?? []) if (at >= one.starts && at < one.ends) return one;
    this.unknown.set(`${name} ${at}`, [period, timeZone, at]);
    return null;
  }

  /** What the next exchange asks for. */
  asked(): [period: string, timeZone: string, at: number][] {
    return [...this.unknown.values()];
  }

  add(periods: readonly [period: string, timeZone: string, starts: number, ends: number][]): void {
    for (const [period, timeZone, starts, ends] of periods) {
      const name = `${period} ${timeZone}`;
      const others = (this.known.get(name) ?? []).filter((one) => one.starts !== starts);
      // The newest first: most calls are in it.
      const all = [{ starts, ends }, ...others].sort((a, b) => b.starts - a.starts);
      this.known.set(name, all.slice(0, MOST));
      for (const [key, [p, z, at]] of this.unknown)
        if (p === period && z === timeZone && at >= starts && at < ends) this.unknown.delete(key);
    }
  }
}

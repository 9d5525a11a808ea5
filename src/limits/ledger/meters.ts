import { HoldMeter } from './hold-meter.js';
import type { Meter } from './meter.js';
import { isIn, type Periods } from './periods.js';
import type { PostgresClock } from './postgres-clock.js';
import { RateMeter } from './rate-meter.js';
import type { LimitRule } from './rule-set.js';

/** The meters of this process, by rule, subject and period. */
export class Meters {
  private readonly byKey = new Map<string, Meter>();
  /** The newest meter of each rule, for most calls the only one. */
  private readonly newest = new Map<LimitRule, Map<string, Meter>>();

  /** @param request called with a meter that should be part of an exchange soon */
  constructor(
    private readonly periods: Periods,
    private readonly clock: PostgresClock,
    private readonly request: (meter: Meter) => void,
  ) {}

  get size(): number {
    return this.byKey.size;
  }

  all(): Iterable<Meter> {
    return this.byKey.values();
  }

  /** Those of keys and teams, and those that all replicas share. */
  byExchange(): { own: Meter[]; hot: Meter[] } {
    const [own, hot]: [Meter[], Meter[]] = [[], []];
    for (const meter of this.byKey.values()) (meter.rule.isHot ? hot : own).push(meter);
    return { own, hot };
  }

  find(rule: string, subject: string, starts: number): Meter | undefined {
    return this.byKey.get(keyOf(rule, subject, starts));
  }

  /** @param at epoch ms. @returns null if the period is not known yet */
  of(rule: LimitRule, subject: string, at: number): Meter | null {
    const newest = this.newest.get(rule)?.get(subject);
    if (newest !== undefined && isIn(at, newest.period)) return newest;
    const period = this.periods.of(rule, at);
    if (period === null) return null;
    const key = keyOf(rule.id, subject, period.starts);
    let meter = this.byKey.get(key);
    if (meter === undefined || meter.rule !== rule) {
      const Kind = rule.period === 'minute' ? RateMeter : HoldMeter;
      meter = new Kind(rule, subject, period, this.request, this.clock);
      this.byKey.set(key, meter);
    }
    if (newest === undefined || newest.period.begins < period.begins) {
      const bySubject = this.newest.get(rule) ?? new Map<string, Meter>();
      this.newest.set(rule, bySubject.set(subject, meter));
    }
    return meter;
  }

  /** Removes those that nobody uses. */
  forget(now: number): void {
    for (const [key, meter] of this.byKey) {
      if (!meter.isForgettable(now) && !(meter.rule.removed && meter.waiters === 0)) continue;
      this.byKey.delete(key);
      const bySubject = this.newest.get(meter.rule);
      if (bySubject?.get(meter.subject) === meter) bySubject.delete(meter.subject);
      if (bySubject?.size === 0) this.newest.delete(meter.rule);
    }
  }
}

function keyOf(rule: string, subject: string, starts: number): string {
  return `${rule} ${starts} ${subject}`;
}

import { HoldMeter } from './hold-meter.js';
import type { Meter } from './meter.js';
import { isIn, type Periods } from './periods.js';
import type { PostgresClock } from './postgres-clock.js';
import { RateMeter } from './rate-meter.js';
import { type LimitRule, type RuleSet, type Subjects, subjectOf } from './rule-set.js';

/** What a call takes from its meters. */
export interface Amounts {
  /** Billionths of a US dollar. */
  readonly usd: number;
  readonly tokens: number;
}

/** What a call takes from the meter of a rule. */
export function amountOf({ resource }: LimitRule, { usd, tokens }: Amounts): number {
  return resource === 'usd' ? usd : resource === 'tokens' ? tokens : 1;
}

/** The meters from which a call takes something, by what it takes. Many calls share one. */
export class CallMeters {
  readonly usd: HoldMeter[] = [];
  readonly tokens: HoldMeter[] = [];
  readonly slots: HoldMeter[] = [];
  readonly rates: RateMeter[] = [];
  /** Calls that begin at these times have these meters (epoch ms). */
  private begins = -Infinity;
  private ends = Infinity;

  constructor(meters: Iterable<Meter>) {
    for (const meter of meters) this.add(meter);
  }

  private add(meter: Meter): void {
    const { begins, ends } = meter.period;
    this.begins = Math.max(this.begins, begins);
    this.ends = Math.min(this.ends, ends);
    if (meter instanceof RateMeter) this.rates.push(meter);
    else if (meter instanceof HoldMeter) this.holdsOf(meter).push(meter);
  }

  private holdsOf({ rule, isConcurrency }: HoldMeter): HoldMeter[] {
    if (isConcurrency) return this.slots;
    return rule.resource === 'usd' ? this.usd : this.tokens;
  }

  /** @param at epoch ms */
  areOf(at: number): boolean {
    return at >= this.begins && at < this.ends;
  }

  /** Whether each has enough, and no other call waits for it. */
  have(amounts: Amounts, now: number): boolean {
    for (const meter of this.usd) if (!has(meter, amounts.usd, now)) return false;
    for (const meter of this.tokens) if (!has(meter, amounts.tokens, now)) return false;
    for (const meter of this.slots) if (!has(meter, 1, now)) return false;
    for (const meter of this.rates) if (!has(meter, amountOf(meter.rule, amounts), now)) return false;
    return true;
  }
}

function has(meter: Meter, amount: number, now: number): boolean {
  return meter.waiters === 0 && meter.available(now) >= amount;
}

/** The meters of this process, by rule, subject and period. */
export class Meters {
  private readonly byKey = new Map<string, Meter>();
  /** The newest meter of each rule, for most calls the only one. */
  private newest = new Map<LimitRule, Map<string, Meter>>();
  /** Those of the calls of a set, by their subjects, while none of them is forgotten. */
  private ofCalls = new WeakMap<RuleSet, Map<string, CallMeters>>();

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
    meter.period = period;
    if (newest === undefined || newest.period.begins < period.begins) {
      const bySubject = this.newest.get(rule) ?? new Map<string, Meter>();
      this.newest.set(rule, bySubject.set(subject, meter));
    }
    return meter;
  }

  /**
   * Those from which a call takes something. Rules that only warn have none, nor have those of which it takes nothing.
   *
   * @param at epoch ms
   * @returns null if a period is not known yet
   */
  for(set: RuleSet, subjects: Subjects, amounts: Amounts, at: number): CallMeters | null {
    let known = this.ofCalls.get(set);
    if (known === undefined) this.ofCalls.set(set, (known = new Map<string, CallMeters>()));
    const key = callKeyOf(set, subjects, amounts);
    const those = known.get(key);
    if (those?.areOf(at)) return those;
    const meters: Meter[] = [];
    for (const rule of set.rules) {
      if (rule.mode === 'warn' || amountOf(rule, amounts) === 0) continue;
      const meter = this.of(rule, subjectOf(rule, subjects), at);
      if (meter === null) return null;
      meters.push(meter);
    }
    const found = new CallMeters(meters);
    known.set(key, found);
    return found;
  }

  /** Rules may have another time zone: which meter counts a call is looked up again. */
  rulesChanged(): void {
    this.newest = new Map();
    this.ofCalls = new WeakMap();
  }

  /** Removes those that nobody uses. */
  forget(now: number): void {
    for (const [key, meter] of this.byKey) {
      if (!meter.isForgettable(now) && !(meter.rule.removed && meter.waiters === 0)) continue;
      this.ofCalls = new WeakMap();
      this.byKey.delete(key);
      const bySubject = this.newest.get(meter.rule);
      if (bySubject?.get(meter.subject) === meter) bySubject.delete(meter.subject);
      if (bySubject?.size === 0) this.newest.delete(meter.rule);
    }
  }
}

/** What tells apart the meters of two calls with one set. Subjects have no spaces. */
function callKeyOf(set: RuleSet, { endUser, session }: Subjects, { usd, tokens }: Amounts): string {
  const taken = usd === 0 ? (tokens === 0 ? '-' : 't') : tokens === 0 ? 'u' : '';
  if (!set.needsEndUser) return taken === '' && session !== null ? session : `${taken} ${session ?? ''}`;
  return `${taken} ${session ?? ''} ${endUser}`;
}

function keyOf(rule: string, subject: string, starts: number): string {
  return `${rule} ${starts} ${subject}`;
}

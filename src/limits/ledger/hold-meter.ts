import type { LimitState } from './limit-errors.js';
import { amountIn, bounded, Meter, type Refusals, UNLIMITED, type Verdict } from './meter.js';
import { patience } from '../../platform/patience.js';

/** What one exchange states of a hold; see migrations/functions/limit_take_holds.sql. */
export interface HoldEntry extends Refusals {
  rule: string;
  subject: string;
  starts: number;
  used: string;
  kept: string;
  recent: string;
  waiting: string;
  one: string;
  recall: boolean;
  busy: string;
  since: number | null;
  gone: number;
  skip: true;
}

export interface HoldResult {
  n: number;
  total: string;
  free: string;
  most: string;
  spent: string;
  limit: string;
  low: boolean;
  recalled: boolean;
  loose: string;
}

/** The others have this long to return what they do not use, before a call is rejected. */
const RECALL_MS = 1_000;
/**
 * A call waits so long for what calls under way do not use: the charges of those that have ended, and what other
 * processes have not returned.
 */
const RETURN = patience('what calls have not used', 5_000);
/** They are asked again after this, for the calls that have come since. */
const RECALL_AGAIN_MS = 1_000;

/** Of a limit that all replicas share, Postgres is told at least this late that charges were settled: they count as held. */
const HOT_SETTLE_MS = 5_000;
/** So long, what the last exchange and the last recall have said of it is taken for true. */
const HOT_CURRENT_MS = 5_000;

/** As in limit_take_holds: the slots of a process that was not seen for so long go to others. */
const SLOTS_VOID_MS = 15_000;

/** What this process holds of a budget, or its slots of a concurrency limit. */
export class HoldMeter extends Meter {
  /** As Postgres knows it, but for what was returned or became part of what is spent since. */
  private held = 0;
  /** Reserved by calls in flight, or used by calls whose charge is not yet part of what is spent. */
  private used = 0;
  private heldWhenSent = 0;
  /** What calls have used that ended, and whose charge is not known to be part of what is spent. */
  private unsettled = 0;
  private unsettledWhenSent = 0;
  private recalledAt = -Infinity;
  /** The time before that. */
  private recalledBefore = -Infinity;
  private last: {
    free: bigint;
    most: bigint;
    spent: bigint;
    limit: bigint;
    unsettled: bigint;
    loose: bigint;
  } | null = null;

  get isConcurrency(): boolean {
    return this.rule.period === 'at_once';
  }

  /** True if Postgres said at the last exchange that everything is spent. */
  get isExhausted(): boolean {
    return this.last !== null && this.last.most <= 0n && this.used >= this.held;
  }

  available(now: number): number {
    if (this.rule.removed) return UNLIMITED;
    return this.areSlotsVoid(now) ? 0 : this.held - this.used;
  }

  take(amount: number, now: number): number {
    this.used += amount;
    this.noteUse(amount, now);
    return 0;
  }

  canTakeOffline(amount: number, now: number, processes: number): boolean {
    if (this.available(now) >= amount) return true;
    // A budget ends with what is held. So do slots, until the others can no longer count on theirs either.
    return this.areSlotsVoid(now) && this.used < share(this.rule.amount, processes);
  }

  private areSlotsVoid(now: number): boolean {
    return this.isConcurrency && now - this.clock.heardAt >= SLOTS_VOID_MS;
  }

  giveBack(amount: number, _slot: number, now: number): void {
    this.used -= amount;
    this.returned(now);
  }

  correct(difference: number, _slot: number, now: number): void {
    this.used += difference;
    if (this.used > this.held) this.changed = true;
    if (difference < 0) this.returned(now);
  }

  /** A call has ended, and what it used waits to become part of what is spent. */
  ended(amount: number, now: number): void {
    this.unsettled += amount;
    this.returned(now);
  }

  /** The charge of a call is part of what is spent now. @param reserved what the call still had reserved */
  settled(reserved: number, charge: number, now: number): void {
    this.used -= reserved;
    this.unsettled -= reserved;
    this.held -= charge;
    this.changed = true;
    this.returned(now);
  }

  get isIdle(): boolean {
    return this.held === 0 && this.used === 0;
  }

  isDue(now: number): boolean {
    if (this.refused > 0 || (this.held > this.used && this.isSurplus(now))) return true;
    return this.changed && (!this.rule.isHot || this.isScarce(now) || now - this.askedAt >= HOT_SETTLE_MS);
  }

  filled(now: number): number {
    return this.isScarce(now) ? Infinity : (this.held - this.used) / this.expected(now);
  }

  /**
   * What is returned leaves memory here, before the message is sent.
   *
   * @param goneMs another process that was not seen for so long is not expected back
   */
  entry(now: number, goneMs: number): HoldEntry {
    const isSurplus = this.isSurplus(now);
    if (isSurplus && this.held > this.used) this.held = this.used;
    this.changed = false;
    const idle = Math.max(this.held - this.used, 0);
    const missing = Math.max(this.waiting - idle, 0);
    const refusals = this.refusals(now);
    this.refused = 0;
    this.heldWhenSent = this.held;
    this.unsettledWhenSent = this.unsettled;
    return {
      rule: this.rule.id,
      subject: this.subject,
      starts: this.period.starts,
      used: bounded(this.used),
      kept: bounded(this.held),
      recent: isSurplus || this.low ? '0' : bounded(this.expected(now) - idle),
      waiting: bounded(missing),
      one: missing === 0 ? '0' : bounded(Math.max(this.smallest - idle, 1)),
      ...refusals,
      recall: missing > 0 && now - this.recalledAt > RECALL_AGAIN_MS,
      busy: bounded(this.used - this.unsettled + this.waiting),
      since: this.isConcurrency || !this.isRecalled ? null : Math.floor(now - this.recalledAt),
      gone: goneMs,
      skip: true,
    };
  }

  apply(result: HoldResult, askedAt: number): void {
    this.held += amountIn(result.total) - this.heldWhenSent;
    this.low = result.low;
    if (result.recalled) [this.recalledBefore, this.recalledAt] = [this.recalledAt, askedAt];
    this.last = {
      free: BigInt(result.free),
      most: BigInt(result.most),
      spent: BigInt(result.spent),
      limit: BigInt(result.limit),
      unsettled: BigInt(this.unsettledWhenSent),
      loose: BigInt(result.loose),
    };
  }

  /** The message may or may not have been executed: the next one states everything again. */
  failed(entry: HoldEntry): void {
    this.changed = true;
    this.refused += entry.refused;
  }

  verdict(amount: number, arrivedAt: number, now: number): Verdict {
    const { askedAt } = this;
    // What is spent of a budget does not come back soon. Slots do: each call asks for them.
    const isHot = this.rule.isHot && !this.isConcurrency;
    // Where exchanges are rare, the last one rejects calls that come after it too.
    const isCurrent = askedAt >= arrivedAt || (isHot && now - askedAt < HOT_CURRENT_MS);
    if (this.last === null || !isCurrent) return 'wait';
    const { most, free, unsettled, loose } = this.last;
    const missing = BigInt(amount - this.available(now));
    // Not even if the others returned everything, and what has ended here had cost nothing.
    if (most + unsettled < missing) return 'reject';
    // Each exchange grants half of what is free. Where they are rare, calls that came before this one may take it all.
    const hasWaited = askedAt - arrivedAt >= RETURN.ms;
    if (free >= missing) return isHot && hasWaited ? 'reject' : 'wait';
    // The difference is held by others. What they said before this call came may be used by calls that have ended since.
    const since = this.isConcurrency ? 0 : isHot ? now - HOT_CURRENT_MS : arrivedAt;
    const haveHeard = (recalledAt: number) => recalledAt >= since && askedAt - recalledAt >= RECALL_MS;
    if (most > free && !haveHeard(this.recalledAt) && !haveHeard(this.recalledBefore)) return 'wait';
    // With so many that share it, there are always calls that have ended and are not charged yet.
    if (isHot || free + unsettled + loose < missing) return 'reject';
    return hasWaited ? 'unknown' : 'wait';
  }

  private get isRecalled(): boolean {
    return this.recalledAt !== -Infinity;
  }

  state(needed: number): LimitState {
    const { spent, limit, most } = this.last ?? { spent: 0n, limit: this.rule.amount, most: 0n };
    const { ends } = this.period;
    return {
      rule: this.rule,
      used: this.isConcurrency ? limit - max(most, 0n) : spent,
      needed: BigInt(needed),
      amount: limit,
      resetsAt: ends === Infinity ? null : new Date(ends),
      retryAfterMs: this.isConcurrency ? 1_000 : null,
    };
  }
}

/** The part of a limit that a process may use alone. */
export function share(amount: bigint, processes: number): number {
  return amount === 0n ? 0 : Number(max(amount / BigInt(processes), 1n));
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

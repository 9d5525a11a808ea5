import { share } from './hold-meter.js';
import type { LimitState } from './limit-errors.js';
import { bounded, Meter, type Refusals, UNLIMITED, type Verdict } from './meter.js';

/**
 * As in migrations/functions/limit_take_rates.sql: any 62.5 seconds that end in a slot lie in it and the 25 before it.
 * So a provider sees no more than the limit in 60 seconds, also if calls take up to 2.5 seconds to reach it.
 */
export const SLOT_MS = 2_500;
const SLOTS = 26;

/** What one exchange states of a rate. */
export interface RateEntry extends Refusals {
  rule: string;
  subject: string;
  recent: string;
  waiting: string;
  one: string;
  changes: [slot: number, difference: string][];
  skip: true;
}

export interface RateResult {
  n: number;
  granted: string;
  free: string;
  slot: number;
  /** What was handed out in each slot before this exchange. */
  slots: [slot: number, used: number][];
  limit: string;
  low: boolean;
}

/** What this process may use of a rate: a lease of the current slot, which ends with the slot. */
export class RateMeter extends Meter {
  private lease = 0n;
  private slot = 0;
  /** Monotonic ms at which the slot has ended at the latest, by Postgres's clock. */
  private validUntil = -Infinity;
  /** What was not sent to Postgres yet. */
  private changes = new Map<number, bigint>();
  /** What this process used in each of the last slots. */
  private readonly own = new Map<number, bigint>();
  private last: {
    free: bigint;
    limit: bigint;
    slots: RateResult['slots'];
    granted: bigint;
    slot: number;
  } | null = null;

  available(now: number): bigint {
    if (this.rule.removed) return UNLIMITED;
    return now < this.validUntil ? this.lease : 0n;
  }

  take(amount: bigint, now: number): number {
    this.noteUse(amount, now);
    const isLeased = now < this.validUntil && this.lease >= amount;
    const slot = isLeased ? this.slot : this.clock.slot(now, SLOT_MS);
    if (isLeased) this.lease -= amount;
    else this.change(slot, amount);
    this.addOwn(slot, amount);
    return slot;
  }

  canTakeOffline(amount: bigint, now: number, processes: number): boolean {
    if (this.available(now) >= amount) return true;
    const slot = this.clock.slot(now, SLOT_MS);
    let used = 0n;
    for (const [at, own] of this.own) if (at > slot - SLOTS) used += own;
    return used + amount <= share(this.rule.amount, processes);
  }

  giveBack(amount: bigint, slot: number, now: number): void {
    this.correct(-amount, slot, now);
  }

  correct(difference: bigint, slot: number, now: number): void {
    if (difference === 0n) return;
    this.addOwn(slot, difference);
    const isCurrent = slot === this.slot && now < this.validUntil;
    if (isCurrent && this.lease >= difference) this.lease -= difference;
    else this.change(slot, difference);
    if (difference < 0n) this.returned(now);
  }

  get isIdle(): boolean {
    return this.lease === 0n && this.changes.size === 0;
  }

  isDue(now: number): boolean {
    const isReturned = this.lease > 0n && (now >= this.validUntil || this.isSurplus(now));
    return this.changed || this.refused > 0 || isReturned;
  }

  needsMore(now: number): boolean {
    return !this.isScarce(now) && this.lease * 2n < this.recent(now);
  }

  entry(now: number): RateEntry {
    const isSurplus = this.isSurplus(now);
    if (this.lease > 0n && (isSurplus || now >= this.validUntil)) {
      this.change(this.slot, -this.lease);
      this.lease = 0n;
    }
    this.changed = false;
    const { changes } = this;
    const refusals = this.refusals(now);
    this.changes = new Map();
    this.refused = 0;
    const missing = this.waiting > this.lease ? this.waiting - this.lease : 0n;
    const smallest = this.smallest > this.lease ? this.smallest - this.lease : 1n;
    const recent = this.recent(now) - this.lease;
    return {
      rule: this.rule.id,
      subject: this.subject,
      recent: isSurplus || this.low ? '0' : bounded(recent),
      waiting: bounded(missing),
      one: missing === 0n ? '0' : bounded(smallest),
      ...refusals,
      changes: [...changes].map(([slot, difference]) => [slot, String(difference)]),
      skip: true,
    };
  }

  apply(result: RateResult, now: number): void {
    if (result.slot !== this.slot) {
      // The old slot has ended meanwhile.
      if (this.lease > 0n) this.change(this.slot, -this.lease);
      this.lease = 0n;
      this.slot = result.slot;
    }
    this.lease += BigInt(result.granted);
    this.validUntil = this.clock.earliestLocal((result.slot + 1) * SLOT_MS);
    this.low = result.low;
    const { slots, slot } = result;
    this.last = {
      free: BigInt(result.free),
      limit: BigInt(result.limit),
      slots,
      granted: BigInt(result.granted),
      slot,
    };
    for (const at of this.own.keys()) if (at <= this.clock.slot(now, SLOT_MS) - SLOTS) this.own.delete(at);
  }

  /** What was used is stated again; what was returned may have been, so it is not: too little is used, never too much. */
  failed({ changes, refused }: RateEntry): void {
    for (const [slot, text] of changes) {
      const difference = BigInt(text);
      if (difference > 0n) this.change(slot, difference);
    }
    this.refused += refused;
    this.changed = true;
  }

  verdict(amount: bigint, arrivedAt: number): Verdict {
    if (this.last === null || this.askedAt < arrivedAt) return 'wait';
    return this.last.free + this.lease >= amount ? 'wait' : 'reject';
  }

  state(needed: bigint, now: number): LimitState {
    const { limit, slots, free, granted, slot } = this.last ?? {
      limit: this.rule.amount,
      slots: [],
      free: 0n,
      granted: 0n,
      slot: this.clock.slot(now, SLOT_MS),
    };
    const left = free + this.lease;
    let missing = needed - left;
    let retryAfterMs = SLOTS * SLOT_MS;
    const used = [...slots, [slot, Number(granted)] as const];
    for (const [at, count] of used) {
      missing -= BigInt(count);
      if (missing > 0n) continue;
      retryAfterMs = Math.max(this.clock.latestLocal((at + SLOTS) * SLOT_MS) - now, 0);
      break;
    }
    return {
      rule: this.rule,
      used: limit - left,
      needed,
      amount: limit,
      resetsAt: null,
      retryAfterMs: Math.ceil(retryAfterMs),
    };
  }

  private change(slot: number, difference: bigint): void {
    this.changes.set(slot, (this.changes.get(slot) ?? 0n) + difference);
    this.changed = true;
  }

  private addOwn(slot: number, amount: bigint): void {
    this.own.set(slot, (this.own.get(slot) ?? 0n) + amount);
  }
}

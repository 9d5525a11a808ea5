import { share } from './hold-meter.js';
import type { LimitState } from './limit-errors.js';
import { amountIn, bounded, Meter, type Refusals, UNLIMITED, type Verdict } from './meter.js';

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
  private lease = 0;
  private slot = 0;
  /** Monotonic ms at which the slot has ended at the latest, by Postgres's clock. */
  private validUntil = -Infinity;
  /** What was not sent to Postgres yet. */
  private changes = new Map<number, number>();
  /** What this process used in each of the last slots. */
  private readonly own = new Map<number, number>();
  private last: {
    free: number;
    limit: bigint;
    slots: RateResult['slots'];
    granted: number;
    slot: number;
  } | null = null;

  available(now: number): number {
    if (this.rule.removed) return UNLIMITED;
    return now < this.validUntil ? this.lease : 0;
  }

  take(amount: number, now: number): number {
    this.noteUse(amount, now);
    const isLeased = now < this.validUntil && this.lease >= amount;
    const slot = isLeased ? this.slot : this.clock.slot(now, SLOT_MS);
    if (isLeased) this.lease -= amount;
    else this.change(slot, amount);
    this.addOwn(slot, amount);
    return slot;
  }

  canTakeOffline(amount: number, now: number, processes: number): boolean {
    if (this.available(now) >= amount) return true;
    const slot = this.clock.slot(now, SLOT_MS);
    let used = 0;
    for (const [at, own] of this.own) if (at > slot - SLOTS) used += own;
    return used + amount <= share(this.rule.amount, processes);
  }

  giveBack(amount: number, slot: number, now: number): void {
    this.correct(-amount, slot, now);
  }

  correct(difference: number, slot: number, now: number): void {
    if (difference === 0) return;
    this.addOwn(slot, difference);
    const isCurrent = slot === this.slot && now < this.validUntil;
    if (isCurrent && this.lease >= difference) this.lease -= difference;
    else this.change(slot, difference);
    if (difference < 0) this.returned(now);
  }

  get isIdle(): boolean {
    return this.lease === 0 && this.changes.size === 0;
  }

  isDue(now: number): boolean {
    const isReturned = this.lease > 0 && (now >= this.validUntil || this.isSurplus(now));
    return this.changed || this.refused > 0 || isReturned;
  }

  filled(now: number): number {
    return this.isScarce(now) ? Infinity : this.lease / this.recent(now);
  }

  entry(now: number): RateEntry {
    const isSurplus = this.isSurplus(now);
    if (this.lease > 0 && (isSurplus || now >= this.validUntil)) {
      this.change(this.slot, -this.lease);
      this.lease = 0;
    }
    this.changed = false;
    const { changes } = this;
    const refusals = this.refusals(now);
    this.changes = new Map();
    this.refused = 0;
    const missing = this.waiting > this.lease ? this.waiting - this.lease : 0;
    const smallest = this.smallest > this.lease ? this.smallest - this.lease : 1;
    const recent = this.recent(now) - this.lease;
    return {
      rule: this.rule.id,
      subject: this.subject,
      recent: isSurplus || this.low ? '0' : bounded(recent),
      waiting: bounded(missing),
      one: missing === 0 ? '0' : bounded(smallest),
      ...refusals,
      changes: [...changes].map(([slot, difference]) => [slot, String(difference)]),
      skip: true,
    };
  }

  apply(result: RateResult, now: number): void {
    const granted = amountIn(result.granted);
    let free = amountIn(result.free);
    let { slots } = result;
    if (result.slot !== this.slot) {
      // The old slot has ended meanwhile. Until the next exchange, Postgres counts as used what is returned of it.
      const { slot: ended, lease } = this;
      if (lease > 0) this.change(ended, -lease);
      if (slots.some(([slot]) => slot === ended)) free += lease;
      slots = slots.map(([slot, used]) => [slot, slot === ended ? used - lease : used]);
      this.lease = 0;
      this.slot = result.slot;
    }
    this.lease += granted;
    this.validUntil = this.clock.earliestLocal((result.slot + 1) * SLOT_MS);
    this.low = result.low;
    this.last = { free, limit: BigInt(result.limit), slots, granted, slot: result.slot };
    for (const at of this.own.keys()) if (at <= this.clock.slot(now, SLOT_MS) - SLOTS) this.own.delete(at);
  }

  /** If it may have been executed, what was returned is not returned again: too little is used then, never too much. */
  failed({ changes, refused }: RateEntry, isCertain: boolean): void {
    for (const [slot, text] of changes) {
      const difference = Number(text);
      if (isCertain || difference > 0) this.change(slot, difference);
    }
    this.refused += refused;
    this.changed = true;
  }

  verdict(amount: number, arrivedAt: number): Verdict {
    if (this.last === null || this.askedAt < arrivedAt) return 'wait';
    return this.last.free + this.lease >= amount ? 'wait' : 'reject';
  }

  state(needed: number, now: number): LimitState {
    const { limit, slots, free, granted, slot } = this.last ?? {
      limit: this.rule.amount,
      slots: [],
      free: 0,
      granted: 0,
      slot: this.clock.slot(now, SLOT_MS),
    };
    const left = free + this.lease;
    let missing = needed - left;
    let retryAfterMs = SLOTS * SLOT_MS;
    const used = [...slots, [slot, granted] as const];
    for (const [at, count] of used) {
      missing -= count;
      if (missing > 0) continue;
      retryAfterMs = Math.max(this.clock.latestLocal((at + SLOTS) * SLOT_MS) - now, 0);
      break;
    }
    return {
      rule: this.rule,
      used: limit - BigInt(left),
      needed: BigInt(needed),
      amount: limit,
      resetsAt: null,
      retryAfterMs: Math.ceil(retryAfterMs),
    };
  }

  private change(slot: number, difference: number): void {
    this.changes.set(slot, (this.changes.get(slot) ?? 0) + difference);
    this.changed = true;
  }

  private addOwn(slot: number, amount: number): void {
    this.own.set(slot, (this.own.get(slot) ?? 0) + amount);
  }
}

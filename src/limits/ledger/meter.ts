import type { LimitState } from './limit-errors.js';
import type { PostgresClock } from './postgres-clock.js';
import type { LimitRule } from './rule-set.js';

/** A period of a budget, in epoch milliseconds. */
export interface Period {
  /** Names it: the midnight that Postgres computes for each of its times. */
  readonly starts: number;
  /** The first time in it: where clocks change at midnight, not the same. */
  readonly begins: number;
  /** The first time after it. Infinity: it never ends. */
  readonly ends: number;
}

/** What a call does when a meter has too little for it. Unknown: it may be enough once another process has responded. */
export type Verdict = 'wait' | 'reject' | 'unknown';

/** Calls rejected since the last exchange, what the last of them would have used, and how many milliseconds ago. */
export interface Refusals {
  refused: number;
  needed: string;
  ago: number;
}

/**
 * What a rule that was removed still admits. Amounts in memory are numbers, exact up to this: nine million dollars held by
 * one process. What it is granted beyond that, it returns.
 */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** As text for Postgres: not negative. */
export function bounded(amount: number): string {
  return String(Math.min(Math.max(amount, 0), UNLIMITED));
}

/** An amount as Postgres has it. */
export function amountIn(text: string): number {
  return Math.min(Number(text), UNLIMITED);
}

const UNUSED_MS = 5_000;
/** Of a limit that all replicas share, what is used in so many seconds is held in advance. */
const HOT_SECONDS = 10;
/** A call elsewhere waits this long for what is returned here, and for the exchanges in between. */
const RECALL_MS = 2_000;

/**
 * The part of one limit that this process may use, for one subject and one period: taken from in memory, filled by the
 * exchange with Postgres.
 */
export abstract class Meter {
  /** Sum of what the waiting calls need, the smallest of them, and their number. */
  waiting = 0;
  smallest = 0;
  waiters = 0;
  /** Calls rejected since the last exchange. */
  refused = 0;
  /** What the last of them would have used, and when it was rejected (monotonic ms). */
  private lastRefused = { needed: 0, at: 0 };
  /** The next exchange has to state it. */
  changed = false;
  /** When the last exchange that succeeded and stated it began (monotonic ms). */
  askedAt = -Infinity;
  /** Less than a tenth of the limit is free: nothing is held in advance. */
  low = false;
  /** Until then another process needs what this one does not use (monotonic ms). */
  recalledUntil = -Infinity;
  protected lastUsedAt = -Infinity;
  private secondAt = 0;
  private thisSecond = 0;
  private lastSecond = 0;

  constructor(
    readonly rule: LimitRule,
    readonly subject: string,
    /** In another time zone, a period that begins at the same time may end at another. */
    public period: Period,
    /** Called when the meter should be part of an exchange soon. */
    private readonly request: (meter: Meter) => void,
    protected readonly clock: PostgresClock,
  ) {}

  /** What calls can take now. @param now monotonic ms, as everywhere below */
  abstract available(now: number): number;
  /** Takes an amount, whether it is available or not. @returns the slot of a rate that it belongs to */
  abstract take(amount: number, now: number): number;
  /** Takes an amount while Postgres is unavailable. @returns false if that is not allowed */
  abstract canTakeOffline(amount: number, now: number, processes: number): boolean;
  /** Returns what was reserved and not used. */
  abstract giveBack(amount: number, slot: number, now: number): void;
  /** Corrects a reservation: `difference` more was used, or less. */
  abstract correct(difference: number, slot: number, now: number): void;
  /** What this process holds is used, or may be needed soon. */
  abstract get isIdle(): boolean;
  /** Whether the meter should be part of an exchange although nobody waits for it. */
  abstract isDue(now: number): boolean;
  /** The part of what is expected to be used that is held and not used; Infinity: nothing is to be held in advance. */
  abstract filled(now: number): number;
  /**
   * An exchange did not execute what the meter has stated.
   *
   * @param isCertain false: it may have
   */
  abstract failed(entry: { refused: number }, isCertain: boolean): void;
  /** What a call needs to know if this meter rejects it. */
  abstract state(amount: number, now: number): LimitState;
  /** Based on an exchange that began after the call came. @param arrivedAt when the call came */
  abstract verdict(amount: number, arrivedAt: number, now: number): Verdict;

  /** A call was reserved: keeps the sums of what was used in the last second. */
  protected noteUse(amount: number, now: number): void {
    this.lastUsedAt = now;
    this.roll(now);
    this.thisSecond += amount;
  }

  /** What was used in about one second. */
  recent(now: number): number {
    this.roll(now);
    return this.lastSecond > this.thisSecond ? this.lastSecond : this.thisSecond;
  }

  /** A call was rejected. @param needed what it would have used */
  refuse(needed: number, now: number): void {
    this.refused++;
    this.lastRefused = { needed, at: now };
  }

  /** The rejected calls, as an exchange states them. */
  protected refusals(now: number): Refusals {
    const { needed, at } = this.lastRefused;
    return { refused: this.refused, needed: bounded(needed), ago: Math.max(Math.round(now - at), 0) };
  }

  /** Another process needs what this one holds and does not use. */
  recall(now: number): void {
    this.recalledUntil = now + RECALL_MS;
    this.request(this);
  }

  /** Whether what is not used is to be returned at once, not kept for the next call. */
  protected isScarce(now: number): boolean {
    return this.low || now < this.recalledUntil;
  }

  /** Something of what is held became free. */
  protected returned(now: number): void {
    if (this.isScarce(now)) this.request(this);
  }

  /** Whether what is held should be returned. */
  protected isSurplus(now: number): boolean {
    return this.waiters === 0 && (this.isScarce(now) || now - this.lastUsedAt > UNUSED_MS);
  }

  isForgettable(now: number): boolean {
    return (
      this.isIdle &&
      this.waiters === 0 &&
      this.refused === 0 &&
      !this.changed &&
      now - this.lastUsedAt > UNUSED_MS
    );
  }

  /** What should be held: the use of a second, or of some where exchanges are rare. */
  protected expected(now: number): number {
    return this.rule.isHot && this.rule.period !== 'at_once'
      ? this.recent(now) * HOT_SECONDS
      : this.recent(now);
  }

  private roll(now: number): void {
    const passed = now - this.secondAt;
    if (passed < 1_000) return;
    this.lastSecond = passed < 2_000 ? this.thisSecond : 0;
    this.thisSecond = 0;
    this.secondAt = now;
  }
}

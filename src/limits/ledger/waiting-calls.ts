import { LimitExceededError, LimitsUnavailableError } from './limit-errors.js';
import type { Meter } from './meter.js';
import type { LimitRule } from './rule-set.js';
import { patience } from '../../platform/patience.js';

const NOT_RETURNED =
  'The limits of this gateway key cannot be checked: the rest of the budget is held by a gateway process that does not respond, or by calls that have ended and are not charged yet. Try again.';

/**
 * No call waits longer: its period is not known, another transaction keeps a meter locked, or exchanges fail now and then.
 * Whatever else a call waits for takes less.
 */
const MAX_WAIT = patience('a call that waits for limits', 10_000);
const TOO_LONG =
  'The limits of this gateway key could not be checked in 10 seconds: Postgres is busy, or something keeps them locked there. Try again.';

/** What a call is to take from one meter. The meter is null while its period is unknown. */
export interface Want {
  meter: Meter | null;
  readonly rule: LimitRule;
  readonly amount: number;
  readonly find: () => Meter | null;
}

export interface WaitingCall {
  readonly wants: Want[];
  readonly arrivedAt: number;
  admit(): void;
  reject(error: Error): void;
}

/** Calls for which this process held too little, in the order in which they came. */
export class WaitingCalls {
  private readonly calls = new Set<WaitingCall>();

  get size(): number {
    return this.calls.size;
  }

  /** Whether a call waits for the period of a meter to be known. */
  get needPeriods(): boolean {
    for (const { wants } of this.calls) for (const { meter } of wants) if (meter === null) return true;
    return false;
  }

  /** @param disconnected aborted when nobody waits for the call any more: then it is rejected */
  add(call: WaitingCall, disconnected?: AbortSignal): void {
    this.calls.add(call);
    for (const want of call.wants) count(want);
    const leave = () => this.remove(call) && call.reject(new LimitsUnavailableError());
    if (disconnected?.aborted) leave();
    else disconnected?.addEventListener('abort', leave);
  }

  /** Admits, rejects or leaves each call after an exchange. */
  decide(now: number): void {
    this.each((call) => {
      if (!find(call.wants)) return false;
      if (canTake(call.wants, now)) return call.admit.bind(call);
      const error = rejection(call.wants, call.arrivedAt, now);
      return error !== null && (() => call.reject(error));
    });
  }

  /** @returns false if it was decided before */
  private remove(call: WaitingCall): boolean {
    if (!this.calls.delete(call)) return false;
    for (const want of call.wants) uncount(want);
    return true;
  }

  /** Rejects calls that have waited too long. */
  expire(now: number): void {
    this.each(
      (call) =>
        now - call.arrivedAt >= MAX_WAIT.ms &&
        (() => call.reject(new LimitsUnavailableError(undefined, TOO_LONG))),
    );
  }

  /** @param decision an admission or a rejection for each call, which takes no more than what the calls before left */
  each(decision: (call: WaitingCall) => (() => void) | false): void {
    for (const call of [...this.calls]) {
      const act = decision(call);
      if (act !== false && this.remove(call)) act();
    }
    for (const { wants } of this.calls) for (const { meter } of wants) if (meter !== null) meter.smallest = 0;
    for (const { wants } of this.calls) for (const want of wants) countSmallest(want);
  }

  /** The meters of all waiting calls. */
  *meters(): Iterable<Meter> {
    for (const { wants } of this.calls) for (const { meter } of wants) if (meter !== null) yield meter;
  }
}

/** True if every meter has enough. */
function canTake(wants: readonly Want[], now: number): boolean {
  for (const { meter, amount } of wants) if (meter!.available(now) < amount) return false;
  return true;
}

/** @returns null if the call may go on while Postgres is unavailable */
export function offlineError(
  wants: readonly Want[],
  now: number,
  processes: number,
  isAllowed: boolean,
  cause: Error | null,
): Error | null {
  if (!find(wants)) return isAllowed ? null : new LimitsUnavailableError(cause);
  for (const { meter, amount } of wants) {
    if (meter!.canTakeOffline(amount, now, processes)) continue;
    if (meter!.rule.period === 'minute' || meter!.rule.period === 'at_once') {
      meter!.refuse(amount, now);
      return new LimitExceededError(meter!.state(amount, now));
    }
    if (!isAllowed) return new LimitsUnavailableError(cause);
  }
  return null;
}

/** @returns false while the period of a meter is not known */
function find(wants: readonly Want[]): boolean {
  let all = true;
  for (const want of wants) {
    if (want.meter !== null) continue;
    want.meter = want.find();
    if (want.meter === null) all = false;
    else count(want);
  }
  return all;
}

/** Why a call cannot be admitted; null: it can, or has to wait. All its meters are known. */
export function rejection(wants: readonly Want[], arrivedAt: number, now: number): Error | null {
  let error: Error | null = null;
  for (const { meter, amount } of wants) {
    if (meter!.available(now) >= amount) continue;
    const verdict = meter!.verdict(amount, arrivedAt, now);
    if (verdict === 'unknown') error = new LimitsUnavailableError(undefined, NOT_RETURNED);
    if (verdict !== 'reject') continue;
    meter!.refuse(amount, now);
    return new LimitExceededError(meter!.state(amount, now));
  }
  return error;
}

function count(want: Want): void {
  const { meter, amount } = want;
  if (meter === null) return;
  meter.waiters++;
  meter.waiting += amount;
  countSmallest(want);
}

function countSmallest({ meter, amount }: Want): void {
  if (meter !== null && (meter.smallest === 0 || amount < meter.smallest)) meter.smallest = amount;
}

function uncount({ meter, amount }: Want): void {
  if (meter === null) return;
  meter.waiters--;
  meter.waiting -= amount;
  if (meter.waiters === 0) meter.waiting = meter.smallest = 0;
}

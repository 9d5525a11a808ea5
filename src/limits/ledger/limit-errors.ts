import type { LimitRule } from './rule-set.js';

export interface LimitState {
  readonly rule: LimitRule;
  /** Used of the amount: spent and reserved of a budget, used in the last minute of a rate. */
  readonly used: bigint;
  /** What the call would have used. */
  readonly needed: bigint;
  /** The amount, with what was credited by a reset. */
  readonly amount: bigint;
  /** When the period ends and the budget resets; null if it never does, and for rates. */
  readonly resetsAt: Date | null;
  /** Milliseconds after which a retry may succeed; null if waiting does not help before `resetsAt`. */
  readonly retryAfterMs: number | null;
}

/** A limit does not admit the call. */
export class LimitExceededError extends Error {
  override readonly name = 'LimitExceededError';

  constructor(readonly state: LimitState) {
    super(`the limit ${state.rule.resource} per ${state.rule.period} of this ${state.rule.scope} is reached`);
  }
}

/** What this process holds does not suffice for the call, and Postgres or another process does not respond. */
export class LimitsUnavailableError extends Error {
  override readonly name = 'LimitsUnavailableError';
  /** Seconds for `retry-after`. */
  readonly retryAfter = 5;

  /** @param reason if Postgres is available */
  constructor(
    cause?: unknown,
    readonly reason?: string,
  ) {
    super('the limits of this call cannot be checked right now', { cause });
  }
}

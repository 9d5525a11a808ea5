import type { Reservation } from '../../request-log/charges.js';
import type { Meter } from './meter.js';
import type { Amounts, CallMeters } from './meters.js';
import { numbersOf } from './rule-set.js';

/** A meter is filled again once it holds less than this part of what is expected to be used. */
const LOW = 0.5;
/** Another one is filled with it if it holds less than this part. */
const FULL = 0.9;

/** What a call used. Null: unknown, so that what was reserved counts until the row of the call is written. */
export interface Usage {
  /** Billionths of a US dollar. */
  readonly usd: number | null;
  readonly tokens: number | null;
}

/**
 * A call that was admitted. Exactly one of these must follow: `settle()` when the call has ended and gets a row in the
 * request log, or `release()` if it does not.
 */
export class Ticket {
  private state: 'open' | 'ended' | 'closed' = 'open';
  /** Taken from each budget in USD: reserved first, what was used once that is known. */
  private usd: number;
  /** The same of tokens. */
  private tokens: number;
  /** Those of the rates, in their order; null: there are none. */
  private slots: number[] | null = null;

  /**
   * @param id of the call's row in the request log
   * @param reservation must be set on the call's record before its start is journalled
   * @param budgets as a row names them that all of them count
   * @param amounts what to take from the meters
   * @param tickets those that wait for their charge, by ID; null: this one has none
   */
  constructor(
    public id: string,
    readonly reservation: Reservation | null,
    private readonly budgets: string,
    private readonly meters: CallMeters,
    { usd, tokens }: Amounts,
    private readonly tickets: Map<string, Ticket> | null,
  ) {
    this.usd = usd;
    this.tokens = tokens;
    tickets?.set(id, this);
  }

  /**
   * Takes the amounts from the meters. Once one of them should be filled, all that are not full are: in one exchange, not
   * each in one of its own.
   *
   * @param request called with a meter that should be filled soon
   */
  take(now: number, request: (meter: Meter) => void): void {
    const { usd, tokens, slots, rates } = this.meters;
    let least = Infinity;
    for (const meter of usd) {
      meter.take(this.usd, now);
      least = Math.min(least, meter.filled(now));
    }
    for (const meter of tokens) {
      meter.take(this.tokens, now);
      least = Math.min(least, meter.filled(now));
    }
    for (const meter of slots) {
      meter.take(1, now);
      least = Math.min(least, meter.filled(now));
    }
    if (rates.length > 0) this.slots = [];
    for (const meter of rates) {
      this.slots!.push(meter.take(meter.rule.resource === 'tokens' ? this.tokens : 1, now));
      least = Math.min(least, meter.filled(now));
    }
    if (least >= LOW) return;
    for (const list of [usd, tokens, slots, rates])
      for (const meter of list) if (meter.filled(now) < FULL) request(meter);
  }

  /**
   * The call has ended. Its slots are free at once, rates are corrected, and budgets keep what was used until the row
   * with the charge is in Postgres.
   */
  settle({ usd, tokens }: Usage): void {
    if (this.state !== 'open') return;
    this.state = 'ended';
    const now = performance.now();
    const { meters } = this;
    if (usd !== null) {
      for (const meter of meters.usd) meter.correct(usd - this.usd, 0, now);
      this.usd = usd;
    }
    if (tokens !== null) {
      for (const meter of meters.tokens) meter.correct(tokens - this.tokens, 0, now);
      meters.rates.forEach((meter, i) => {
        if (meter.rule.resource === 'tokens') meter.correct(tokens - this.tokens, this.slots![i]!, now);
      });
      this.tokens = tokens;
    }
    for (const meter of meters.slots) meter.giveBack(1, 0, now);
    for (const meter of meters.usd) meter.ended(this.usd, now);
    for (const meter of meters.tokens) meter.ended(this.tokens, now);
    if (meters.usd.length === 0 && meters.tokens.length === 0) this.close();
  }

  /** The call goes on and has used this so far: what it used above its reservation is reserved now. Null: not known. */
  raise({ usd, tokens }: Usage): void {
    if (this.state !== 'open') return;
    const now = performance.now();
    const { meters } = this;
    if (usd !== null && usd > this.usd) {
      for (const meter of meters.usd) meter.correct(usd - this.usd, 0, now);
      this.usd = usd;
    }
    if (tokens === null || tokens <= this.tokens) return;
    for (const meter of meters.tokens) meter.correct(tokens - this.tokens, 0, now);
    meters.rates.forEach((meter, i) => {
      // It counts it now, not when the call began.
      if (meter.rule.resource === 'tokens') this.slots![i] = meter.take(tokens - this.tokens, now);
    });
    this.tokens = tokens;
  }

  /** True if nothing is left of a budget that this call uses. */
  get isExhausted(): boolean {
    const { usd, tokens } = this.meters;
    return [...usd, ...tokens].some((meter) => !meter.rule.removed && meter.isExhausted);
  }

  /** The call goes on with another attempt. @param id of its row, which ends the ticket */
  continue(id: string): void {
    if (this.state === 'closed') return;
    this.tickets?.delete(this.id);
    this.id = id;
    this.tickets?.set(id, this);
  }

  /** The call does not take place, and gets no row: everything is returned. */
  release(): void {
    if (this.state !== 'open') return;
    const now = performance.now();
    const { usd, tokens, slots, rates } = this.meters;
    for (const meter of usd) meter.giveBack(this.usd, 0, now);
    for (const meter of tokens) meter.giveBack(this.tokens, 0, now);
    for (const meter of slots) meter.giveBack(1, 0, now);
    rates.forEach((meter, i) =>
      meter.giveBack(meter.rule.resource === 'tokens' ? this.tokens : 1, this.slots![i]!, now),
    );
    this.close();
  }

  /**
   * The charge of the call is part of what is spent. Called by the ledger.
   *
   * @param usage what its row is charged; null: nothing
   * @param budgets those that its row names: of a call that was admitted for several targets, not all; null: all
   */
  written(usage: Usage, budgets: string | null = null): void {
    if (this.state === 'open') this.settle(usage);
    if (this.state === 'closed') return;
    const now = performance.now();
    const { usd, tokens } = this.meters;
    const named = budgets === null || budgets === this.budgets ? null : numbersOf(budgets);
    for (const meter of usd) meter.settled(this.usd, chargeOf(meter, usage.usd, named), now);
    for (const meter of tokens) meter.settled(this.tokens, chargeOf(meter, usage.tokens, named), now);
    this.close();
  }

  private close(): void {
    this.state = 'closed';
    this.tickets?.delete(this.id);
  }
}

/** @param named the budgets that are charged; null: all */
function chargeOf({ rule }: Meter, charge: number | null, named: readonly string[] | null): number {
  return named === null || named.includes(rule.nr) ? (charge ?? 0) : 0;
}

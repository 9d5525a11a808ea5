import type { Reservation } from '../../request-log/charges.js';
import { HoldMeter } from './hold-meter.js';
import type { Meter } from './meter.js';
import { isBudget, numbersOf } from './rule-set.js';

/** What a call has taken from one meter. */
export interface Part {
  readonly meter: Meter;
  /** Reserved first; what was used once that is known. */
  amount: bigint;
  slot: number;
}

/** What a call used. Null: unknown, so that what was reserved counts until the row of the call is written. */
export interface Usage {
  /** Billionths of a US dollar. */
  readonly usd: bigint | null;
  readonly tokens: bigint | null;
}

/**
 * A call that was admitted. Exactly one of these must follow: `settle()` when the call has ended and gets a row in the
 * request log, or `release()` if it does not.
 */
export class Ticket {
  private state: 'open' | 'ended' | 'closed' = 'open';

  /**
   * @param id of the call's row in the request log
   * @param reservation must be set on the call's record before its start is journalled
   * @param tickets those that wait for their charge, by ID; null: this one has none
   */
  constructor(
    public id: string,
    readonly reservation: Reservation | null,
    private readonly parts: readonly Part[],
    private readonly tickets: Map<string, Ticket> | null,
  ) {
    tickets?.set(id, this);
  }

  /**
   * The call has ended. Its slots are free at once, rates are corrected, and budgets keep what was used until the row
   * with the charge is in Postgres.
   */
  settle({ usd, tokens }: Usage): void {
    if (this.state !== 'open') return;
    this.state = 'ended';
    const now = performance.now();
    let isCharged = false;
    for (const part of this.parts) {
      const { meter } = part;
      const { resource } = meter.rule;
      const used = resource === 'usd' ? usd : tokens;
      if (resource === 'concurrent_requests') meter.giveBack(part.amount, part.slot, now);
      else if (resource !== 'requests' && used !== null) {
        meter.correct(used - part.amount, part.slot, now);
        part.amount = used;
      }
      if (meter instanceof HoldMeter && isBudget(meter.rule)) {
        meter.ended(part.amount, now);
        isCharged = true;
      }
    }
    if (!isCharged) this.close();
  }

  /** The call goes on and has used this so far: what it used above its reservation is reserved now. Null: not known. */
  raise({ usd, tokens }: Usage): void {
    if (this.state !== 'open') return;
    const now = performance.now();
    for (const part of this.parts) {
      const { meter } = part;
      const { resource } = meter.rule;
      const used = resource === 'usd' ? usd : resource === 'tokens' ? tokens : null;
      if (used === null || used <= part.amount) continue;
      // A rate counts it now, not when the call began.
      if (meter instanceof HoldMeter) meter.correct(used - part.amount, part.slot, now);
      else part.slot = meter.take(used - part.amount, now);
      part.amount = used;
    }
  }

  /** True if nothing is left of a budget that this call uses. */
  get isExhausted(): boolean {
    return this.parts.some(
      ({ meter }) =>
        meter instanceof HoldMeter && isBudget(meter.rule) && !meter.rule.removed && meter.isExhausted,
    );
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
    for (const { meter, amount, slot } of this.parts) meter.giveBack(amount, slot, now);
    this.close();
  }

  /**
   * The charge of the call is part of what is spent. Called by the ledger.
   *
   * @param budgets those that its row names: of a call that was admitted for several targets, not all; null: all
   */
  written({ usd, tokens }: Usage, budgets: string | null = null): void {
    if (this.state === 'open') this.settle({ usd, tokens });
    if (this.state === 'closed') return;
    const now = performance.now();
    const named = budgets === null ? null : numbersOf(budgets);
    for (const { meter, amount } of this.parts) {
      if (!(meter instanceof HoldMeter) || meter.isConcurrency) continue;
      const isCharged = named === null || named.includes(meter.rule.nr);
      const charge = meter.rule.resource === 'usd' ? usd : tokens;
      meter.settled(amount, isCharged ? (charge ?? 0n) : 0n, now);
    }
    this.close();
  }

  private close(): void {
    this.state = 'closed';
    this.tickets?.delete(this.id);
  }
}

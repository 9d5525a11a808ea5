import type { Reservation } from '../../request-log/charges.js';
import { chargesOf } from '../../request-log/charges.js';
import type { ChargeKeeper } from '../../request-log/writer/charge-keeper.js';
import type { LogRow } from '../../request-log/columns.js';
import { startOf } from '../../request-log/column-domains.js';
import { nanoOfCharge } from '../../limit-rules/usd.js';
import { type ExchangeOptions, LedgerExchange } from './exchange.js';
import { HoldMeter } from './hold-meter.js';
import { LimitsUnavailableError } from './limit-errors.js';
import type { Meter } from './meter.js';
import { type Amounts, amountOf, CallMeters, Meters } from './meters.js';
import { Periods } from './periods.js';
import { PostgresClock } from './postgres-clock.js';
import { type RuleCache } from './rule-cache.js';
import { type RuleSet, type Subjects, subjectOf } from './rule-set.js';
import { forgetHolds, settlement } from './settlement.js';
import { Ticket } from './ticket.js';
import { offlineError, rejection, type Want, WaitingCalls } from './waiting-calls.js';
import { patience } from '../../platform/patience.js';

export interface LedgerOptions extends ExchangeOptions {
  /** Without Postgres, calls are admitted for this long. */
  staleMs: number;
  /** Without Postgres, budgets admit calls beyond what this process holds; they are charged afterwards. */
  withoutDatabase: 'reject' | 'allow';
}

/** What a call may use at most; 0 USD if no budget in USD applies. */
export interface CallReservation extends Amounts {
  /** So many attempts of the call may be charged that each. Absent: one. */
  readonly attempts?: number;
}

/** What decides which meters count a call. */
export interface Counted extends Subjects {
  /** False: rules for some models count it, whatever model its request names. */
  readonly isModelKnown: boolean;
}

/** Who waits for a call. */
export interface Waiter {
  /** Aborted when nobody does any more. */
  readonly disconnected: AbortSignal;
}

const TICK_MS = 1_000;
/**
 * Calls wait this long for an exchange to succeed again before they are decided without Postgres: what the others hold
 * stays theirs for a while, and a busy server is not an outage.
 */
const OFFLINE_AFTER = patience('exchanges that fail', 5_000);

/**
 * Holds, spends and settles. For a policy:
 *
 *     const rules = ledger.rulesOf(teamId, keyId);            // null: no limit applies, and nothing else is to be done
 *     const ticket = await ledger.admit(rules, id, counted, { usd, tokens });   // a Ticket at once, or a promise of it
 *     call.reservation = ticket.reservation;                  // before the start of the call is journalled
 *     ...
 *     ticket.settle({ usd, tokens });                         // when the call has ended; null: not known
 *     ticket.release();                                       // instead, if the call gets no row
 *
 * The charge itself is computed by the log writer (request-log/charges.ts) and becomes part of what is spent in the
 * statement that inserts the row (settlement.ts).
 *
 * Within what this process holds, a call costs no await. Otherwise it waits for an exchange, which all waiting calls
 * share. `admit` throws or rejects with LimitExceededError, which says which rule, what was used, when the budget resets
 * and when a retry may succeed; or with LimitsUnavailableError.
 */
export class Ledger implements ChargeKeeper {
  readonly settlement = settlement;
  readonly forgetHolds = forgetHolds;
  readonly clock = new PostgresClock();
  readonly exchange: LedgerExchange;
  /** Of limits that many replicas share. */
  readonly hotExchange: LedgerExchange;
  private readonly periods = new Periods();
  private readonly waiting = new WaitingCalls();
  private readonly tickets = new Map<string, Ticket>();
  private readonly meters = new Meters(this.periods, this.clock, (meter) => this.request(meter));
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly rules: RuleCache,
    private readonly options: LedgerOptions,
  ) {
    const listener = {
      ended: (succeeded: boolean) => this.decide(succeeded),
      // It may have missed that others need what is not used.
      recovered: () => this.returnUnused(() => true),
    };
    this.exchange = new LedgerExchange(options, this.clock, this.periods, listener);
    this.hotExchange = new LedgerExchange({ ...options, isHot: true }, this.clock, this.periods, listener);
    rules.listen(({ lowered, areOthers }) => {
      if (areOthers) this.meters.rulesChanged();
      if (lowered.length > 0) this.returnUnused((meter) => lowered.includes(meter.rule));
    });
  }

  /** Begins to exchange. Call once Postgres is ready. */
  start(): void {
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref();
  }

  /** The rules of a key and its team; null if there are none. */
  rulesOf(teamId: string, keyId: string): RuleSet | null {
    return this.rules.of(teamId, keyId);
  }

  /** Calls that wait for an exchange. */
  get waitingCalls(): number {
    return this.waiting.size;
  }

  /** Budgets of which nothing was left at the last exchange. */
  get exhaustedBudgets(): number {
    let count = 0;
    for (const meter of this.meters.all())
      if (meter instanceof HoldMeter && !meter.isConcurrency && meter.isExhausted) count++;
    return count;
  }

  /**
   * Admits a call.
   *
   * @param id of the call, a UUIDv7: its time decides in which period it counts
   * @param counted ignored as far as no rule needs it
   * @param waiter read only if the call has to wait; once it is gone, the promise rejects
   * @throws LimitExceededError, LimitsUnavailableError; the promise rejects with the same
   */
  admit(
    set: RuleSet,
    id: string,
    counted: Counted,
    reservation: CallReservation,
    waiter?: Waiter,
  ): Ticket | Promise<Ticket> {
    const now = performance.now();
    const startedAt = startOf(id);
    const amounts = allOf(reservation);
    const meters = this.meters.for(set, counted, amounts, startedAt);
    if (meters === null || !meters.have(amounts, now))
      return this.admitLater(set, id, counted, reservation, startedAt, now, waiter);
    if (this.isStale(now)) throw new LimitsUnavailableError(this.exchange.failure);
    return this.take(set, id, counted, reservation, meters, now);
  }

  /** Rows of calls with a ticket were written: their charges are part of what is spent. */
  written(rows: readonly LogRow[]): void {
    if (this.tickets.size === 0) return;
    for (const row of rows) {
      const ticket = this.tickets.get(row.id);
      if (ticket === undefined) continue;
      const { usd, tokens, budgets } = chargesOf(row);
      ticket.written({ usd: usd === null ? null : nanoOfCharge(usd), tokens }, budgets);
    }
    // What these calls have not used may be enough for others, whose next exchange may be seconds away.
    if (this.waiting.size > 0) this.waiting.decide(performance.now());
  }

  async stopped(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer);
    this.waiting.each((call) => () => call.reject(new LimitsUnavailableError()));
    for (const meter of this.meters.all()) meter.recall(performance.now());
    const { own, hot } = this.meters.byExchange();
    await Promise.all([this.exchange.stop(own), this.hotExchange.stop(hot)]);
  }

  /** Another process needs what this one holds of a meter and does not use. @param payload of the notification */
  recall(payload: string): void {
    try {
      const [rule, subject, starts] = JSON.parse(payload) as [string, string, number];
      this.meters.find(rule, subject, starts)?.recall(performance.now());
    } catch {
      // Any session of the database may notify, with any payload.
    }
  }

  private readonly request = (meter: Meter): void => {
    (meter.rule.isHot ? this.hotExchange : this.exchange).request(meter);
  };

  /** States what this process holds of every limit again: Postgres may have lost it. */
  exchangeAll(): void {
    for (const meter of this.meters.all()) this.request(meter);
  }

  private returnUnused(isMeant: (meter: Meter) => boolean): void {
    const now = performance.now();
    for (const meter of this.meters.all()) if (isMeant(meter)) meter.recall(now);
  }

  private admitLater(
    set: RuleSet,
    id: string,
    counted: Counted,
    reservation: CallReservation,
    startedAt: number,
    now: number,
    waiter?: Waiter,
  ): Ticket | Promise<Ticket> {
    const wants: Want[] = [];
    const amounts = allOf(reservation);
    for (const rule of set.rules) {
      const amount = amountOf(rule, amounts);
      if (amount === 0 || rule.mode === 'warn') continue;
      const search = () => this.meters.of(rule, subjectOf(rule, counted), startedAt);
      wants.push({ meter: search(), rule, amount, find: search });
    }
    const admit = () => {
      const at = performance.now();
      const meters = new CallMeters(wants.flatMap(({ meter }) => meter ?? []));
      return this.take(set, id, counted, reservation, meters, at);
    };
    if (this.isOffline(now, wants)) {
      const error = this.errorOffline(wants, now);
      if (error !== null) throw error;
      return admit();
    }
    const areKnown = wants.every(({ meter }) => meter !== null);
    const error = areKnown ? rejection(wants, now, now) : null;
    if (error !== null) throw error;
    return new Promise((resolve, reject) => {
      const call = { wants, arrivedAt: now, admit: () => resolve(admit()), reject };
      this.waiting.add(call, waiter?.disconnected);
      for (const { meter } of wants) if (meter !== null) this.request(meter);
      if (!areKnown) this.exchange.wake();
    });
  }

  private take(
    set: RuleSet,
    id: string,
    counted: Counted,
    reservation: CallReservation,
    meters: CallMeters,
    now: number,
  ): Ticket {
    const { usd, tokens } = reservation;
    const isCharged = set.needsUsd || set.chargesTokens;
    const charged: Reservation | null = isCharged
      ? {
          usd: set.needsUsd ? usd : null,
          tokens: set.chargesTokens ? tokens : null,
          subject: set.chargesEndUser ? counted.endUser : null,
          session: set.chargesSession ? counted.session : null,
          budgets: set,
          isModelKnown: counted.isModelKnown,
        }
      : null;
    const ticket = new Ticket(
      id,
      charged,
      set.names,
      meters,
      allOf(reservation),
      isCharged ? this.tickets : null,
    );
    ticket.take(now, this.request);
    return ticket;
  }

  private tick(): void {
    const now = performance.now();
    this.meters.forget(now);
    // Not only after an exchange: an attempt to connect takes seconds.
    this.decideOffline(now);
    this.waiting.expire(now);
    const { own, hot } = this.meters.byExchange();
    this.exchange.tick(now, own, !this.rules.isEmpty || this.meters.size > 0);
    this.hotExchange.tick(now, hot, false);
  }

  private decide(succeeded: boolean): void {
    const now = performance.now();
    if (succeeded) this.waiting.decide(now);
    else this.decideOffline(now);
    for (const meter of this.waiting.meters()) this.request(meter);
    if (this.waiting.needPeriods) this.exchange.wake();
  }

  private decideOffline(now: number): void {
    this.waiting.each((call) => {
      if (!this.isOffline(now, call.wants)) return false;
      const error = this.errorOffline(call.wants, now);
      return error === null ? () => call.admit() : () => call.reject(error);
    });
  }

  private errorOffline(wants: Want[], now: number): Error | null {
    const { failure, processes, confirmedAt } = this.failingOf(wants);
    // A process that was never connected does not know how many others there are.
    if (this.isStale(now) || confirmedAt === -Infinity) return new LimitsUnavailableError(failure);
    return offlineError(wants, now, processes, this.options.withoutDatabase === 'allow', failure);
  }

  /** Postgres is unavailable, not only slow. */
  private isOffline(now: number, wants: readonly Want[]): boolean {
    return now - this.failingOf(wants).failingSince > OFFLINE_AFTER.ms;
  }

  /** Of the exchanges that a call needs, the one that has failed for longer. */
  private failingOf(wants: readonly Want[]): LedgerExchange {
    const { exchange, hotExchange } = this;
    const isHot = wants.some(({ rule }) => rule.isHot);
    return isHot && hotExchange.failingSince < exchange.failingSince ? hotExchange : exchange;
  }

  /** Postgres has been unavailable for so long that what this process holds may be void soon. */
  private isStale(now: number): boolean {
    return now - this.exchange.failingSince > this.options.staleMs;
  }
}

/** Of all attempts of a call. */
function allOf(reservation: CallReservation): Amounts {
  const { usd, tokens, attempts = 1 } = reservation;
  return attempts === 1 ? reservation : { usd: usd * attempts, tokens: tokens * attempts };
}

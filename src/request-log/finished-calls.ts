import { Injectable, Logger } from '@nestjs/common';
import type { CallRecord } from './call-record.js';
import type { CallTicket, FinishedCall } from './finished-call.js';
import { showable } from './column-domains.js';
import type { LogRow } from './columns.js';
import { responseModelOf } from './log-row.js';
import type { ResponseUsage } from '../bodies/usage/token-usage.js';

export type { FinishedCall };

/** What is called with each finished call. */
export type FinishedCallListener = (call: FinishedCall) => unknown;

const REMIND_MS = 60_000;

interface Subscription {
  readonly name: string;
  readonly listener: FinishedCallListener;
  loggedAt: number;
}

/**
 * Notifies other modules, an organisation's own ones included, of each call that this process forwarded or replayed:
 * once, after the response was sent and the row was journalled. A listener cannot affect the call or its row. It runs on
 * the event loop that serves the other calls, so it must defer work that takes time.
 */
@Injectable()
export class FinishedCalls {
  private readonly logger = new Logger('FinishedCalls');
  private readonly subscriptions: Subscription[] = [];
  private readonly tickets = { name: 'ticket of a call policy', loggedAt: -Infinity };

  /**
   * Registers a listener. Call in a constructor.
   *
   * @param name names the listener in the log if it fails
   */
  listen(name: string, listener: FinishedCallListener): void {
    this.subscriptions.push({ name, listener, loggedAt: -Infinity });
  }

  /**
   * Never throws.
   *
   * @internal
   */
  notify(row: Readonly<LogRow>, call: CallRecord, usage: ResponseUsage): void {
    if (this.subscriptions.length === 0 && !call.hasTickets) return;
    const { upstream, traceparent, tracestate, key } = call.origin;
    const finished: FinishedCall = {
      row,
      requestModel: call.requestModel === null ? null : row.model,
      responseModel: responseModelOf(call, usage),
      overheadMs: row.outcome === 'replayed' || row.outcome === 'cached' ? null : call.overheadMs,
      upstream,
      traceparent: showable(traceparent, key),
      tracestate: showable(tracestate, key),
    };
    if (call.hasTickets) this.settle(call.takeTickets(), (ticket) => ticket.settle(finished));
    for (const one of this.subscriptions) {
      try {
        const result = one.listener(finished);
        // A rejection that nobody handles would end the process.
        if (result instanceof Promise) result.catch((error: unknown) => this.logFailure(one, error));
      } catch (error) {
        this.logFailure(one, error);
      }
    }
  }

  /**
   * Ends the tickets of a call that has no row. Never throws.
   *
   * @internal
   */
  abandon(call: CallRecord): void {
    if (call.hasTickets) this.settle(call.takeTickets(), (ticket) => ticket.abandon());
  }

  private settle(tickets: readonly CallTicket[], end: (ticket: CallTicket) => unknown): void {
    for (const ticket of tickets) {
      try {
        const result = end(ticket);
        if (result instanceof Promise) result.catch((error: unknown) => this.logFailure(this.tickets, error));
      } catch (error) {
        this.logFailure(this.tickets, error);
      }
    }
  }

  private logFailure(one: Pick<Subscription, 'name' | 'loggedAt'>, error: unknown): void {
    const now = performance.now();
    if (now - one.loggedAt < REMIND_MS) return;
    one.loggedAt = now;
    const stack = error instanceof Error ? error.stack : undefined;
    this.logger.error(`The listener "${one.name}" failed (logged once a minute): ${String(error)}`, stack);
  }
}

import { Injectable, Logger } from '@nestjs/common';
import type { CallRecord } from './call-record.js';
import { showable } from './column-domains.js';
import type { LogRow } from './columns.js';
import { responseModelOf } from './log-row.js';
import type { ResponseUsage } from '../tokens/token-usage.js';

/** A finished call as listeners get it. It contains no prompt, response, query or credential. */
export interface FinishedCall {
  /** As it is written to Postgres. */
  readonly row: Readonly<LogRow>;
  /** Model named in the request; null if it names none, and `row.model` is the one named in the response. */
  readonly requestModel: string | null;
  /** Model named in the response. */
  readonly responseModel: string | null;
  /**
   * Milliseconds from the request head until the call is forwarded, without the wait for a small body: gate, key, claim
   * and journal. Null for replays, which are not forwarded.
   */
  readonly overheadMs: number | null;
  /** Scheme, host and port of the provider. */
  readonly upstream: string;
  /** `traceparent` and `tracestate` as the client sent them; null also if they contain a key. */
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

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

  /**
   * Registers a listener. Call in a constructor.
   *
   * @param name names the listener in the log if it fails
   */
  listen(name: string, listener: FinishedCallListener): void {
    this.subscriptions.push({ name, listener, loggedAt: -Infinity });
  }

  /** Never throws. */
  notify(row: Readonly<LogRow>, call: CallRecord, usage: ResponseUsage): void {
    if (this.subscriptions.length === 0) return;
    const { upstream, traceparent, tracestate, key } = call.origin;
    const finished: FinishedCall = {
      row,
      requestModel: call.requestModel === null ? null : row.model,
      responseModel: responseModelOf(call, usage),
      overheadMs: row.outcome === 'replayed' ? null : call.overheadMs,
      upstream,
      traceparent: showable(traceparent, key),
      tracestate: showable(tracestate, key),
    };
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

  private logFailure(one: Subscription, error: unknown): void {
    const now = performance.now();
    if (now - one.loggedAt < REMIND_MS) return;
    one.loggedAt = now;
    const stack = error instanceof Error ? error.stack : undefined;
    this.logger.error(`The listener "${one.name}" failed (logged once a minute): ${String(error)}`, stack);
  }
}

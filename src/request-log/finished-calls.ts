import { Injectable, Logger } from '@nestjs/common';
import type { CallRecord } from './call-record.js';
import { showable } from './column-domains.js';
import type { LogRow } from './columns.js';
import { responseModelOf } from './log-row.js';
import type { Usage } from '../tokens/token-counts.js';

/** What is told of a call that has ended here. Facts alone: no prompt, answer, query or credential. */
export interface FinishedCall {
  /** As it goes to Postgres. */
  readonly row: Readonly<LogRow>;
  /** As the request named it; null: it did not, and `row.model` is what the answer says. */
  readonly requestModel: string | null;
  /** The model that answered, by the name the provider gives it. */
  readonly responseModel: string | null;
  /**
   * Milliseconds from the request's head to its hand-over to the provider, without the wait for a small body: gate, key,
   * claim and journal. Null for replays, which are handed to nobody.
   */
  readonly overheadMs: number | null;
  /** Scheme, host and port of the provider. */
  readonly upstream: string;
  /** `traceparent` and `tracestate` as the client sent them; null also when they hold a key. */
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

export type FinishedCallListener = (call: FinishedCall) => unknown;

const REMIND_MS = 60_000;

interface Listening {
  readonly name: string;
  readonly listener: FinishedCallListener;
  toldAt: number;
}

/**
 * Where other rooms and an organisation's own modules hear of each call that was forwarded or replayed by this process,
 * once, after its end: its row is journalled and with the writer, its answer out. Nothing a listener does reaches the
 * call or its row; but it runs on the event loop that serves the other calls, so work that takes time is for later.
 */
@Injectable()
export class FinishedCalls {
  private readonly logger = new Logger('FinishedCalls');
  private readonly listening: Listening[] = [];

  /**
   * To be called while the application is put together.
   *
   * @param name says in the log whose listener failed
   */
  listen(name: string, listener: FinishedCallListener): void {
    this.listening.push({ name, listener, toldAt: -Infinity });
  }

  /** Never throws. */
  tell(row: Readonly<LogRow>, call: CallRecord, usage: Usage): void {
    if (this.listening.length === 0) return;
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
    for (const one of this.listening) {
      try {
        const result = one.listener(finished);
        // A rejection that nobody handles would end the process.
        if (result instanceof Promise) result.catch((error: unknown) => this.complain(one, error));
      } catch (error) {
        this.complain(one, error);
      }
    }
  }

  private complain(one: Listening, error: unknown): void {
    const now = performance.now();
    if (now - one.toldAt < REMIND_MS) return;
    one.toldAt = now;
    const stack = error instanceof Error ? error.stack : undefined;
    this.logger.error(`The listener "${one.name}" failed (told once a minute): ${String(error)}`, stack);
  }
}

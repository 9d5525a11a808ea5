import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import type { LogRow } from './columns.js';

/** A finished call as listeners get it. It contains no prompt, response, query or credential. */
export interface FinishedCall {
  /** As it is written to Postgres, but without its cost; a call from the response cache has the tokens of the stored response. */
  readonly row: Readonly<LogRow>;
  /** Model named in the request; null if it names none, and `row.model` is the one named in the response. */
  readonly requestModel: string | null;
  /** Model named in the response. */
  readonly responseModel: string | null;
  /**
   * Milliseconds from the request head until the call is forwarded, without the wait for a small body: gate, key, claim
   * and journal. Null for replays, which are not forwarded, and for later attempts of a call by a route.
   */
  readonly overheadMs: number | null;
  /** Scheme, host and port of the provider. */
  readonly upstream: string;
  /** `traceparent` and `tracestate` as the client sent them; null also if they contain a key. */
  readonly traceparent: string | null;
  readonly tracestate: string | null;
}

/**
 * What a call policy keeps for a call that it admitted, such as a reservation. In the end `settle` or `abandon` is called,
 * once; for a call with several attempts, with its last one.
 */
export interface CallTicket {
  /** The call goes on with another attempt, which has a row of its own. @param id of that row */
  continue?(id: string): void;
  /**
   * The call has ended and has a row. Its token counts are null if they are not known; `outcome` is `replayed` if the
   * client got a stored response, which cost nothing.
   */
  settle(call: FinishedCall): void;
  /** The call was not forwarded: another policy or a later step rejected it, or its client disconnected. It has no row. */
  abandon(): void;
  /** A call that may run for hours, a WebSocket, has used this so far. Called every 10 s if it has changed. */
  usedSoFar?(usage: ResponseUsage): void;
  /** True: the call must end, because what it may use is spent. Read several times a second while a WebSocket is open. */
  readonly isExhausted?: boolean;
}

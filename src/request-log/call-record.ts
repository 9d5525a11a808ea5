import type { Outcome } from './request-log.entity.js';

/** What is known of a call before it is forwarded. */
export interface CallOrigin {
  /** UUIDv7 of ours: the row's id, its start, and the client's `x-gateway-request-id`. */
  id: string;
  keyId: string;
  teamId: string;
  provider: string;
  method: string;
  /** As the client sent it, without the query. */
  path: string;
  clientIp: string | null;
  userAgent: string | null;
  idempotencyKey: string | null;
  sdkRetryCount: number | null;
}

/**
 * What is remembered of one call: opened by the interceptor, told facts by whoever learns them, closed once by the
 * interceptor. Times are monotonic milliseconds, so that a stepping clock cannot bend them.
 */
export class CallRecord {
  requestBytes = 0;
  responseBytes = 0;
  status: number | null = null;
  streamed = false;
  providerRequestId: string | null = null;
  ttfbMs: number | null = null;
  durationMs: number | null = null;
  outcome: Outcome | null = null;
  errorCode: string | null = null;

  private readonly openedAt = performance.now();
  private dispatched = false;

  constructor(readonly origin: CallOrigin) {}

  /** The last act before the call is handed to the provider: from here on it leaves a row. */
  begin(): void {
    this.dispatched = true;
  }

  get begun(): boolean {
    return this.dispatched;
  }

  /** The provider's head is there and goes to the client. */
  answered(status: number, streamed: boolean, providerRequestId: string | null): void {
    this.status = status;
    this.streamed = streamed;
    this.providerRequestId = providerRequestId;
    this.ttfbMs = performance.now() - this.openedAt;
  }

  /** The verdict; the first one stands, since later ones only echo it (an abort destroys the upstream socket). */
  end(outcome: Outcome, errorCode: string | null = null): void {
    if (this.outcome !== null) return;
    this.outcome = outcome;
    this.errorCode = errorCode;
    this.durationMs = performance.now() - this.openedAt;
  }
}

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by RequestLogInterceptor. */
    call: CallRecord;
  }
}

import { isStreamed } from '../tokens/event-stream.js';
import type { JournalFile } from './journal/journal-file.js';
import type { GatewayError } from '../errors/gateway-error.js';
import { modelFromPath, scanModel } from '../tokens/model-scan.js';
import type { Outcome } from './outcome.js';
import { copyFor, type ResponseCopy } from '../tokens/usage-reader.js';

/** What is known of a call before it is forwarded. */
export interface CallOrigin {
  /** UUIDv7 of ours: the row's id, its start, and the client's `x-gateway-request-id`. */
  id: string;
  keyId: string;
  teamId: string;
  /** The caller's own key, so that no text that holds it is kept. */
  key: string;
  provider: string;
  method: string;
  /** As the client sent it, without the query. */
  path: string;
  clientIp: string | null;
  userAgent: string | null;
  idempotencyKey: string | null;
  sdkRetryCount: number | null;
  /** Path after `/p/<provider>`, without the query: says what kind of answer comes. */
  endpoint: string;
  /** Scheme, host and port of the provider. */
  upstream: string;
  /** When the request's head was here (monotonic ms). */
  arrivedAt: number;
  /** `traceparent` and `tracestate` as the client sent them (W3C Trace Context). */
  traceparent: string | null;
  tracestate: string | null;
}

/** What the head of an answer says. */
export interface AnswerHead {
  /** Null when the client is not there to get it. */
  status: number | null;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  providerRequestId: string | null;
}

/** What the record tells of at the moments that must survive the death of this process. */
export interface CallLog {
  /** Journals a beginning together with whatever else this turn of the event loop brings. */
  begin(call: CallRecord, begun: (refusal: GatewayError | null) => void): void;
  /** Journals an end at once. */
  end(call: CallRecord): void;
  /** Journals an end together with whatever else this turn of the event loop brings. */
  endThen(call: CallRecord, ended: () => void): void;
  /** Null unless every step must be on the disk before the wire may show it. */
  durable(): Promise<void> | null;
}

/**
 * What is remembered of one call: opened by the interceptor, told facts by whoever learns them, closed once by the
 * interceptor. Times are monotonic milliseconds, so that a stepping clock cannot bend them.
 */
export class CallRecord {
  requestBytes = 0;
  responseBytes = 0;
  status: number | null = null;
  contentType: string | undefined;
  /** Model named by the request's body, else by its path. */
  requestModel: string | null;
  /** Beginning and end of the response, for its token counts; null while there is none, and where none is read. */
  copy: ResponseCopy | null = null;
  providerRequestId: string | null = null;
  ttfbMs: number | null = null;
  durationMs: number | null = null;
  outcome: Outcome | null = null;
  errorCode: string | null = null;
  /** Journal files that hold a line of this call. */
  readonly files: JournalFile[] = [];
  /** True once the journal holds the end. */
  endKept = false;
  /** From the request's head to its hand-over, without the wait for a body that is gathered. */
  overheadMs: number | null = null;

  private readonly openedAt = performance.now();
  private bodyAwaitedAt = 0;
  private bodyWaitMs = 0;

  constructor(
    readonly origin: CallOrigin,
    private readonly log: CallLog,
  ) {
    this.requestModel = modelFromPath(origin.endpoint);
  }

  get streamed(): boolean {
    return isStreamed(this.contentType);
  }

  /**
   * The last act before the call is handed to the provider: from there on it leaves a row.
   *
   * @param begun called within this turn of the event loop; given a refusal (journal_unavailable, or shutting_down when
   * the call has ended by then), the call must not be forwarded
   */
  begin(begun: (refusal: GatewayError | null) => void): void {
    this.log.begin(this, begun);
  }

  /** The beginning is in this file. */
  keepBegin(file: JournalFile): void {
    this.files.push(file);
    this.overheadMs = performance.now() - this.origin.arrivedAt - this.bodyWaitMs;
  }

  get begun(): boolean {
    return this.files.length > 0;
  }

  /** The request's body is waited for before anything is sent on. */
  awaitBody(): void {
    this.bodyAwaitedAt = performance.now();
  }

  /** The first piece of a body that is handed on as it arrives is here. */
  bodyBegun(): void {
    this.bodyWaitMs = performance.now() - this.bodyAwaitedAt;
  }

  /** A whole request body that is at hand: it names the model, where it is small enough to be looked through. */
  requested(body: Buffer): void {
    if (this.bodyAwaitedAt > 0) this.bodyWaitMs = performance.now() - this.bodyAwaitedAt;
    // A provider that takes the model from the path knows no `model` member: where there is one, it is what counts.
    this.requestModel = scanModel(body) ?? this.requestModel;
  }

  /** The provider's head is there and goes to the client. */
  answered(head: AnswerHead): void {
    this.status = head.status;
    this.contentType = head.contentType;
    this.copy = copyFor(head.contentType, head.contentEncoding, this.origin.endpoint);
    this.providerRequestId = head.providerRequestId;
    this.ttfbMs = performance.now() - this.openedAt;
  }

  /**
   * The verdict, journalled before the write that completes the answer. The first one stands, since later ones only
   * echo it (an abort destroys the upstream socket); but `completed` said ahead of the last write gives way when that
   * write never reached the client.
   */
  end(outcome: Outcome, errorCode: string | null = null): void {
    const first = this.outcome === null;
    if (this.judge(outcome, errorCode) && first && this.begun) this.log.end(this);
  }

  /**
   * The verdict on an answer that is there to its end.
   *
   * @param ended called within this turn of the event loop, when it is journalled: the write that completes the answer
   */
  endThen(outcome: Outcome, ended: () => void): void {
    this.judge(outcome, null);
    this.log.endThen(this, ended);
  }

  /** The end is in this file. */
  keepEnd(file: JournalFile): void {
    this.files.push(file);
    this.endKept = true;
  }

  private judge(outcome: Outcome, errorCode: string | null): boolean {
    if (this.outcome !== null && (this.outcome !== 'completed' || outcome === 'completed')) return false;
    this.outcome = outcome;
    this.errorCode = errorCode;
    this.durationMs = performance.now() - this.openedAt;
    return true;
  }

  /** The call's last byte is out or its client is gone: the time it took is known. */
  settled(): void {
    this.durationMs = performance.now() - this.openedAt;
  }

  /** Settles when what was journalled so far is on the disk; null when the wire need not wait for that. */
  durable(): Promise<void> | null {
    return this.log.durable();
  }
}

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by RequestLogInterceptor. */
    call: CallRecord;
  }
}

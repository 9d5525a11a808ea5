import { firstHeader } from '../platform/raw-headers.js';
import { type Attempt, attemptId } from './attempts.js';
import { type Attribution, withBody } from './attribution.js';
import type { CallerSecrets } from './column-domains.js';
import type { LogRow } from './columns.js';
import type { CallTicket } from './finished-call.js';
import type { Reservation } from './charges.js';
import type { JournalFile } from './journal/journal-file.js';
import { endUserOf } from '../bodies/end-user.js';
import { modelFromPath } from '../bodies/path-model.js';
import { RequestReader } from '../bodies/request-reader.js';
import { hasRequestUnits, type RequestUnits, takeRequestUnits } from '../bodies/request-units.js';
import type { Outcome } from './outcome.js';
import { isStreamed } from '../bodies/usage/framing/stream-framing.js';
import { errorOfHeader, type ProviderError } from '../bodies/usage/provider-error.js';
import { PlainCopy } from '../bodies/usage/plain-copy.js';
import type { ResponseUsage, SeenJob, TokenUsage } from '../bodies/usage/token-usage.js';
import {
  copyFor,
  copyForJob,
  readJobResponse,
  readStreamedJob,
  readUsage,
  type ResponseCopy,
  usageOfHead,
} from '../bodies/usage/usage-reader.js';

/** The facts of a call that are known before it is forwarded. */
export interface CallOrigin {
  /** UUIDv7: the row's ID, its start time, and the client's `x-gateway-request-id`. */
  id: string;
  keyId: string;
  teamId: string;
  /** Whom the caller's token was issued to, as the row may show it; null for a static key. */
  subject: string | null;
  /** The caller's key, and credentials of its own, so that no text that contains one is stored. */
  key: CallerSecrets;
  provider: string;
  method: string;
  /** As the client sent it, without the query. */
  path: string;
  clientIp: string | null;
  userAgent: string | null;
  idempotencyKey: string | null;
  sdkRetryCount: number | null;
  /** From the headers. */
  attribution: Attribution | null;
  /** Is the attribution also read from the request body? */
  attributesBody: boolean;
  /** Path after `/p/<provider>`, without the query: it determines the kind of response. */
  endpoint: string;
  /** Path of the provider's URL: it may name a deployment. */
  basePath: string;
  /** Scheme, host and port of the provider. */
  upstream: string;
  /** When the request's head arrived (monotonic ms). */
  arrivedAt: number;
  /** `traceparent` and `tracestate` as the client sent them (W3C Trace Context). */
  traceparent: string | null;
  tracestate: string | null;
}

/** Bytes of the largest body from which the attribution is read. */
const MAX_ATTRIBUTED = 262_144;
const NO_TICKETS: readonly CallTicket[] = [];

/**
 * The facts of one call, collected from its request to its end. RequestLogService opens, journals and closes it. Times are
 * monotonic milliseconds, so that a clock change does not affect them.
 */
export class CallRecord {
  requestBytes = 0;
  /** Bytes of the response body for the client. It stops when the client disconnects and its call is finished without it. */
  responseBytes = 0;
  /** Bytes of the response body that the provider has sent. */
  receivedBytes = 0;
  /** True once the response of the provider has been received to its end. */
  isWhole = false;
  status: number | null = null;
  contentType: string | undefined;
  /** The model that the call is admitted and priced with: in the request's path, otherwise in its body. */
  requestModel: string | null;
  /** The most output tokens that the request allows: its limit times its choices; null: it names none. */
  outputLimit: number | null = null;
  attribution: Attribution | null;
  /** What was read of the request body; the attempts of a call share it. */
  body: RequestReader;
  /** What the request says of units with a price; null if the endpoint has none. The attempts of a call share it. */
  units: RequestUnits | null;
  /** Start and end of the response body, for its token counts; null before the response, and if it has no token counts. */
  copy: ResponseCopy | null = null;
  /** Whether the response is read for a job that it describes, beside its usage. */
  watchesJobs = false;
  /** The response describes a job at most: what it reports is not the usage of this call. */
  isOfJob = false;
  /** The request asks for a background response: the provider goes on with it after it has responded. */
  private isBackground = false;
  /** The response is a stream whose first event, which is awaited, describes a job. */
  awaitsJob = false;
  private response: ResponseUsage | Promise<ResponseUsage> | null = null;
  /** Counted while the call runs, in place of those of a copy: the responses of a WebSocket. */
  countedUsage: ResponseUsage | null = null;
  /** Token counts in the response head; null for nearly every provider. */
  headUsage: TokenUsage | null = null;
  providerRequestId: string | null = null;
  ttfbMs: number | null = null;
  durationMs: number | null = null;
  outcome: Outcome | null = null;
  errorCode: string | null = null;
  /** Why the provider could not be reached, as a code of the system or of TLS. */
  errorCause: string | null = null;
  /** The error in the response head; null for nearly every provider. */
  headError: ProviderError | null = null;
  /** What the gateway changed in the forwarded bytes; null if nothing. */
  altered: string | null = null;
  /** Journal files with a record of this call. */
  readonly files: JournalFile[] = [];
  /** The one of them with the newest usage so far; null if none was journalled. */
  usageFile: JournalFile | null = null;
  /** True once the end is journalled. */
  endIsWritten = false;
  /** True while the end is part of a batch that is about to be journalled. */
  endIsInBatch = false;
  /** Filled as far as it is journalled; null before the start is journalled, and once the writer has it. */
  row: LogRow | null = null;
  /** The call is over: its last byte was written, or its client's socket is closed. */
  isClosed = false;
  /** What the call has reserved of budgets; null: none applies. Set before its start is journalled. */
  reservation: Reservation | null = null;
  /** The record of its `Idempotency-Key`, the ID in base64url; null: it has none. Set before its start is journalled. */
  claim: string | null = null;
  /** From the request's head to forwarding, without the wait for a buffered body; null for later attempts of a call. */
  overheadMs: number | null = null;

  /** The model that the body has named so far. */
  private bodyModel: string | null = null;
  private tickets: CallTicket[] | null = null;
  private bodyAwaitedAt = 0;
  private bodyWaitMs = 0;
  /** Of a response whose client had disconnected before it. */
  private unseenStatus = 0;

  /** Null unless the call uses a route. Set before its start is journalled. */
  attempt: Attempt | null = null;

  /** @param openedAt when the request arrived, for the times of the row */
  constructor(
    readonly origin: CallOrigin,
    private readonly openedAt = performance.now(),
  ) {
    const hasUnits = hasRequestUnits(origin.endpoint);
    this.body = new RequestReader(false, hasUnits);
    this.units = hasUnits ? {} : null;
    this.requestModel = modelFromPath(origin.basePath + origin.endpoint);
    this.attribution = origin.attribution;
  }

  /** The record of the next attempt of the same call. Its times count from the request's head too. */
  next(provider: string, upstream: string): CallRecord {
    const { callId, number } = this.attempt!;
    const attempt = { callId, number: number + 1 };
    const next = new CallRecord(
      { ...this.origin, id: attemptId(attempt), provider, upstream },
      this.openedAt,
    );
    next.attempt = attempt;
    next.requestBytes = this.requestBytes;
    next.requestModel = this.requestModel;
    next.body = this.body;
    next.outputLimit = this.outputLimit;
    next.isBackground = this.isBackground;
    next.units = this.units;
    next.bodyModel = this.bodyModel;
    next.attribution = this.attribution;
    next.reservation = this.reservation;
    next.claim = this.claim;
    return next;
  }

  get streamed(): boolean {
    return isStreamed(this.contentType);
  }

  /** The response is an error by its status: the one that the client got, or would have got. */
  get isFailed(): boolean {
    return (this.status ?? this.unseenStatus) >= 400;
  }

  addTicket(ticket: CallTicket): void {
    (this.tickets ??= []).push(ticket);
  }

  /** True if a policy is to be notified of the end of the call. */
  get hasTickets(): boolean {
    return this.tickets !== null;
  }

  /** Returns the tickets, once. */
  takeTickets(): readonly CallTicket[] {
    const tickets = this.tickets ?? NO_TICKETS;
    this.tickets = null;
    return tickets;
  }

  /** Reports to the tickets what the call, which goes on, has used so far. */
  reportUsage(usage: ResponseUsage): void {
    for (const ticket of this.tickets ?? NO_TICKETS) ticket.usedSoFar?.(usage);
  }

  /** True if the call must end because a budget is spent. */
  get isExhausted(): boolean {
    return this.tickets !== null && this.tickets.some((ticket) => ticket.isExhausted === true);
  }

  /** The call goes on with another attempt. */
  passTickets(next: CallRecord): void {
    for (const ticket of this.takeTickets()) {
      ticket.continue?.(next.origin.id);
      next.addTicket(ticket);
    }
  }

  /** The most input tokens that the request can have: a token for each byte. Null: its bytes do not say it, or not yet. */
  get inputLimit(): number | null {
    return this.requestBytes === 0 || this.body.showsInput ? this.requestBytes : null;
  }

  /** The provider may run tools, which add input and have a price. */
  get mayUseTools(): boolean {
    return this.countedUsage === null && this.requestBytes > 0 && this.body.mayAskForTools;
  }

  /** The start was journalled in this file. */
  beginWritten(file: JournalFile): void {
    this.files.push(file);
    if (this.attempt !== null && this.attempt.number > 1) return;
    this.overheadMs = performance.now() - this.origin.arrivedAt - this.bodyWaitMs;
  }

  get begun(): boolean {
    return this.files.length > 0;
  }

  /** Starts the wait for the request body. */
  awaitBody(): void {
    this.bodyAwaitedAt = performance.now();
  }

  /** The first chunk of a streamed body has arrived. */
  bodyBegun(): void {
    this.bodyWaitMs = performance.now() - this.bodyAwaitedAt;
  }

  /** A chunk of a request body that is read whole has arrived. The chunk is not kept. */
  requestChunkRead(chunk: Buffer): void {
    this.requestBytes += chunk.length;
    this.body.add(chunk);
    if (this.units !== null && this.body.json !== null)
      takeRequestUnits(this.origin.endpoint, this.body.json, this.units);
    // A provider that takes the model from the path ignores the one in the body, which many clients send as well.
    if (this.requestModel === this.bodyModel) this.requestModel = this.bodyModel = this.body.model;
  }

  /** A chunk of a streamed request body has arrived. The chunk is not kept. */
  requestChunkPassed(chunk: Buffer): void {
    this.requestChunkRead(chunk);
    this.takeRequested();
    this.body.forget();
  }

  /** A request body that is read whole is complete. */
  requestBodyRead(): void {
    if (this.bodyAwaitedAt > 0) this.bodyBegun();
    this.body.finish();
    this.takeRequested();
    if (this.origin.attributesBody && this.body.json !== null && this.requestBytes <= MAX_ATTRIBUTED)
      this.attribution = withBody(this.attribution, endUserOf(this.body.json));
    this.body.forget();
  }

  private takeRequested(): void {
    this.outputLimit = this.body.outputLimit(this.origin.endpoint);
    this.isBackground ||= this.body.isBackground;
  }

  /**
   * Records the head of the response.
   *
   * @param headers flat raw headers, as sent to the client
   * @param clientLeft the client has disconnected and does not get it: the row has no status
   */
  responseBegun(status: number, headers: readonly string[], clientLeft = false): void {
    this.status = clientLeft ? null : status;
    if (clientLeft) this.unseenStatus = status;
    this.contentType = firstHeader(headers, 'content-type');
    const { isFailed } = this;
    const coding = firstHeader(headers, 'content-encoding');
    this.copy = copyFor(this.contentType, coding, this.origin.endpoint, isFailed);
    // 206: which part of the response it is, the client has chosen.
    if (this.copy === null && this.watchesJobs && status !== 206) {
      this.copy = copyForJob(this.contentType, coding, this.origin.endpoint);
      this.isOfJob = this.copy !== null;
    }
    this.awaitsJob = this.createsResponse && this.streamed && this.copy instanceof PlainCopy;
    if (isFailed) this.headError = errorOfHeader(firstHeader(headers, 'x-amzn-errortype'));
    this.headUsage = usageOfHead(headers, this.origin.endpoint);
    this.providerRequestId =
      firstHeader(headers, 'x-request-id') ?? firstHeader(headers, 'request-id') ?? null;
    this.ttfbMs = performance.now() - this.openedAt;
  }

  private get createsResponse(): boolean {
    return this.isBackground && this.watchesJobs && !this.isFailed && this.copy !== null;
  }

  /** The response may describe a job that the call has created. */
  get mayCreateJob(): boolean {
    return this.origin.method === 'POST' && (this.isOfJob || this.createsResponse);
  }

  /** Reads the response, once it is complete: its usage, or the job that it describes. */
  readResponse(): ResponseUsage | Promise<ResponseUsage> {
    const { contentType, copy, origin } = this;
    return (this.response ??= this.isOfJob
      ? readJobResponse(contentType, origin.endpoint, copy)
      : readUsage(contentType, origin.endpoint, copy, this.headUsage, this.isFailed));
  }

  /** The job that the start of the stream describes; null: not yet, or none. */
  readStreamedJob(): SeenJob | null {
    const copy = this.copy as PlainCopy;
    const job = readStreamedJob(this.contentType, this.origin.endpoint, copy);
    if (job !== null || copy.hasStart) this.awaitsJob = false;
    return job;
  }

  /** The end was journalled in this file. */
  endWritten(file: JournalFile): void {
    this.files.push(file);
    this.endIsWritten = true;
  }

  /**
   * Sets the outcome. The first one stands, because later ones only follow from it (an abort destroys the upstream
   * socket). The exceptions are `completed`, which is set before the last write and replaced if that write never reached
   * the client, and `retried`, which is set before the next attempt begins and replaced if that cannot begin.
   *
   * @returns true if the outcome was set
   */
  judge(outcome: Outcome, errorCode: string | null): boolean {
    const isLast = this.outcome !== 'completed' && this.outcome !== 'retried';
    if (this.outcome !== null && (isLast || this.outcome === outcome)) return false;
    this.outcome = outcome;
    this.errorCode = errorCode;
    this.durationMs = performance.now() - this.openedAt;
    return true;
  }

  /** Sets the duration: the last byte was written, or the client has disconnected. */
  stopTimer(): void {
    this.durationMs = performance.now() - this.openedAt;
  }
}

/** The calls whose record is not closed yet, or whose row the writer does not have yet. */
export class CallList {
  readonly all = new Set<CallRecord>();
  /** Those whose record is not closed yet. */
  openCount = 0;

  add(call: CallRecord): CallRecord {
    this.all.add(call);
    this.openCount++;
    return call;
  }

  /** @returns false if it is closed already */
  close(call: CallRecord): boolean {
    if (call.isClosed) return false;
    call.isClosed = true;
    this.openCount--;
    if (call.row === null) this.all.delete(call);
    return true;
  }

  /** The writer gets the row of this call. */
  finish(call: CallRecord): void {
    call.row = null;
    if (call.isClosed) this.all.delete(call);
  }
}

import { GatewayError, type GatewayErrorCode } from '../../errors/gateway-error.js';
import { withAccessToken } from '../../providers/provider.js';
import { firstHeader } from '../../platform/raw-headers.js';
import { patience } from '../../platform/patience.js';
import type { CallRecord } from '../../request-log/call-record.js';
import type { Outcome } from '../../request-log/outcome.js';
import type { RetryCause } from '../../routes/route.entity.js';
import { retryAfterOf } from '../../routes/target-health.js';
import { Exchange } from '../exchange/exchange.js';
import { statusOf } from '../http/error-response.js';
import { bodyLength, hasForeignCoding, responseHeaders } from '../headers.js';
import { readerOf, sendGathered } from '../exchange/request-body.js';
import { StreamedBody } from '../exchange/streamed-body.js';
import { errorCause, readUpstreamError } from '../upstream/upstream-error.js';
import { KeptResponse } from './kept-response.js';

/** The body of a response that is not delivered is waited for no longer. */
const KEEP = patience('a response that is not delivered', 1_000);

type Body = Parameters<Exchange['send']>[0];

/**
 * Forwards a call to one target of a route. If the target cannot have run it, or the route allows that it has, and nothing
 * was sent to the client, the call goes on with another target: `isRetried` is then true, and this attempt ends with
 * the journalled start of the next one.
 */
export class Attempt extends Exchange {
  /** The call goes on with another attempt. */
  isRetried = false;
  /** The attempt that this one follows; null: it is the first. */
  private before: Attempt | null = null;
  private readonly routed = this.call.routed!;
  private keeping: KeptResponse | null = null;
  private keepTimer: NodeJS.Timeout | undefined;
  /** Why the attempt has no response. */
  private errorCode: GatewayErrorCode | null = null;
  private hasHints = false;
  private sentBody: Body = null;
  private sentLength: string | undefined;

  /** The attempt with the next target, which was found. */
  next(): Attempt {
    const { call, services } = this;
    const routed = call.routed!;
    routed.advance();
    const record = services.log.openNext(call.record, call.provider.name, call.provider.origin);
    routed.describe(record);
    const next = new Attempt(call, services, record);
    next.before = this;
    return next;
  }

  override send(body: Body, length?: string): void {
    this.sentBody = body;
    this.sentLength = length;
    super.send(body, length);
  }

  protected override sendRequest(): void {
    if (this.before === null) {
      super.sendRequest();
      return;
    }
    if (this.clientLeft) this.writer.detach();
    this.writer.waitForClient(false);
    const { sentBody, sentLength } = this.before;
    if (this.call.admitted?.body) sendGathered(this);
    else {
      if (sentBody instanceof StreamedBody)
        sentBody.passTo(readerOf(this, this.services.settings.maxBodyBytes));
      this.send(sentBody, sentLength);
    }
  }

  protected override begin(begun: (error: GatewayError | null) => void, isWhole: boolean): void {
    if (this.before === null) {
      super.begin(begun, isWhole);
      return;
    }
    this.call.record = this.record;
    this.services.log.beginNext(this.before.record, this.before.errorCode, this.record, begun);
  }

  /** With the credential of this target: a call that cannot have one was not sent to it. */
  protected override dispatch(body: Body, length?: string): void {
    const { tokens } = this.call.provider;
    if (tokens === null) {
      super.dispatch(body, length);
      return;
    }
    withAccessToken(this.call.provider, tokens).then(
      (provider) => {
        if (this.phase === 'done') {
          this.pool.cancelReservation();
          return;
        }
        this.call.provider = provider;
        super.dispatch(body, length);
      },
      (error: GatewayError) => {
        this.pool.cancelReservation();
        if (this.phase === 'done') return;
        this.routed.failed();
        if (!this.mayRetry('connect')) return this.fail(error, 'upstream_error');
        this.errorCode = 'provider_credential_unavailable';
        this.record.errorCause = errorCause(error);
        this.retry();
      },
    );
  }

  override onHeaders(status: number, rawHeaders: Buffer[], resume: () => void, reason: string): boolean {
    if (this.phase === 'done') return true;
    if (status < 200 || hasForeignCoding(rawHeaders)) {
      if (status === 103) this.hasHints = true;
      return super.onHeaders(status, rawHeaders, resume, reason);
    }
    const cause = causeOf(status);
    const headers =
      cause === null ? [] : responseHeaders(rawHeaders, this.call.provider.secret, this.call.id);
    if (cause === null) this.routed.succeeded();
    else if (cause === 'failed') this.routed.failed();
    else {
      const milliseconds = firstHeader(headers, 'retry-after-ms');
      this.routed.refused(retryAfterOf(milliseconds, firstHeader(headers, 'retry-after'), Date.now()));
    }
    if (cause === null || !this.mayRetry(cause)) return super.onHeaders(status, rawHeaders, resume, reason);
    this.interim?.stop();
    const length = bodyLength(this.req.method, status, headers);
    this.record.responseBegun(status, headers);
    if (this.record.altered !== null) headers.push('x-gateway-altered', this.record.altered);
    this.keeping = new KeptResponse(status, reason, headers, length);
    this.keepTimer = setTimeout(() => this.keep(false), KEEP.ms);
    return true;
  }

  override onData(chunk: Buffer): boolean {
    if (this.keeping === null || this.phase === 'done') return super.onData(chunk);
    this.record.copy?.add(chunk);
    if (!this.keeping.add(chunk)) this.keep(false);
    return true;
  }

  override onComplete(trailers: string[] | null): void {
    if (this.keeping === null || this.phase === 'done') {
      super.onComplete(trailers);
      return;
    }
    // As for any response: such a connection is not used again.
    if (trailers !== null && trailers.length > 0) this.abortUpstream();
    this.connection = null;
    this.keep(true);
  }

  override onError(error: Error): void {
    if (this.keeping !== null && this.phase !== 'done') {
      this.keep(false);
      return;
    }
    if (this.phase === 'receiving' || this.phase === 'sending') {
      this.routed.failed();
      const { code, outcome } = readUpstreamError(error, this.phase === 'sending', false);
      const cause = this.phase === 'receiving' ? 'connect' : 'failed';
      // What is no HTTP is a response too.
      const hasNoResponse = outcome === 'upstream_error' && error.name !== 'HTTPParserError';
      if (hasNoResponse && this.mayRetry(cause)) {
        this.errorCode = code;
        this.record.errorCause = errorCause(error);
        this.retry();
        return;
      }
    }
    super.onError(error);
  }

  /** If this attempt has no response, the client gets the last one that another attempt had. */
  override fail(error: GatewayError, outcome: Outcome): void {
    const { kept } = this.routed;
    if (outcome !== 'client_error') this.routed.failed();
    const isOver = this.phase === 'done' || this.call.finishing !== null || this.res.headersSent;
    if (isOver || kept === null || outcome === 'client_error') super.fail(error, outcome);
    else this.deliver(kept, error, outcome);
  }

  protected override settle(error?: GatewayError): void {
    const { record } = this;
    // It could not begin: see endBefore().
    if (error !== undefined && !record.begun && record.judge('upstream_error', error.code))
      record.status = statusOf(error);
    super.settle(error);
  }

  protected override detach(): void {
    clearTimeout(this.keepTimer);
    this.routed.ended();
    if (this.before !== null && !this.record.begun) this.endBefore(this.before.record);
    super.detach();
  }

  /** This attempt has not begun and has no row: the one before it was the last, and its row says what the client got. */
  private endBefore(before: CallRecord): void {
    const { call, record } = this;
    const { log } = this.services;
    // That attempt took place, so the call counts against its limits. With its row, the tickets have ended.
    if (before.row !== null) record.passTickets(before);
    before.status = record.status;
    log.end(before, record.outcome ?? 'client_aborted', record.errorCode);
    // The record that the call has is closed with it.
    if (call.record === before) log.close(record);
  }

  /** Asked before a byte was sent to the client. Finds the next target. */
  private mayRetry(cause: RetryCause): boolean {
    if (!this.routed.retriesOn(cause) || this.hasHints || this.record.outcome !== null) return false;
    // Nobody would get the response to another attempt.
    if (this.call.finishing !== null) return false;
    // Without a connection, nothing of the body was taken.
    if (cause !== 'connect' && this.sentBody instanceof StreamedBody) return false;
    return this.routed.findNext();
  }

  /** A response that is not delivered is an error, whose usage nobody needs. */
  protected override get mayFinish(): boolean {
    return this.keeping === null && super.mayFinish;
  }

  private keep(isWhole: boolean): void {
    this.keeping!.isWhole = isWhole;
    this.routed.kept = this.keeping;
    this.keeping = null;
    this.retry();
  }

  private retry(): void {
    // The shutdown may have ended the call meanwhile.
    this.isRetried = this.record.outcome === null;
    // The next attempt sends it.
    this.body = null;
    this.settle();
  }

  private deliver(kept: KeptResponse, error: GatewayError, outcome: Outcome): void {
    const { record, recorder, writer } = this;
    const { status, reason, headers, expectedBytes, body, isWhole } = kept;
    this.interim?.stop();
    this.abortUpstream();
    this.phase = 'finishing';
    record.responseBegun(status, headers, this.clientLeft);
    record.responseBytes = body.length;
    // It is no success, of which the cache would need the headers as they came.
    recorder?.responded(status, reason, headers, expectedBytes, []);
    recorder?.add(body);
    record.errorCause = errorCause(error.cause);
    this.services.log.end(record, outcome, error.code);
    if (isWhole) recorder?.complete();
    else void recorder?.close(false);
    this.whenDurable(() => {
      writer.writeHead(status, reason, headers, expectedBytes !== null);
      if (isWhole) writer.end(body);
      else {
        writer.write(body);
        // Once it was written.
        setImmediate(() => writer.abort());
      }
      return false;
    });
    if (this.clientLeft) this.settle();
  }
}

function causeOf(status: number): 'refused' | 'failed' | null {
  if (status === 429 || status === 503 || status === 529) return 'refused';
  return status === 500 || status === 502 || status === 504 ? 'failed' : null;
}

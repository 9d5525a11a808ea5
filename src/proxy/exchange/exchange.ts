import type { Request, Response } from 'express';
import { GatewayError } from '../../errors/gateway-error.js';
import type { ResponseRecorder } from '../../idempotency/response-recorder.js';
import type { Outcome } from '../../request-log/outcome.js';
import type { Call } from '../call.js';
import { otherTeam } from '../../providers/provider-access.js';
import { noteRejection } from '../../providers/provider.js';
import {
  bodyLength,
  hasForeignCoding,
  providerHeaders,
  responseHeaders,
  withoutTokenMarks,
} from '../headers.js';
import { statusOf } from '../http/error-response.js';
import type { ExchangeServices } from './exchange-services.js';
import { type BodyOwner, sendBody } from './request-body.js';
import { writerFor } from './filtered-response.js';
import { outcomeOfClose, type ResponseWriter } from './response-writer.js';
import { StreamedBody } from './streamed-body.js';
import { InterimResponses } from '../upstream/interim-responses.js';
import { errorCause, isTrailerError, readUpstreamError } from '../upstream/upstream-error.js';
import type { PooledCall, UpstreamPool } from '../upstream/upstream-pool.js';

/**
 * How far a call is. It only moves forward, and may go to `done` from each phase.
 * - `receiving`: the provider has received nothing; the request body or a connection is awaited
 * - `sending`: a connection carries the request
 * - `responding`: the final response has begun
 * - `finishing`: the response is complete; its end is being journalled and written to the client
 * - `done`: everything was written to the client, its socket is closed, or the call failed; later events are ignored
 */
export type ExchangePhase = 'receiving' | 'sending' | 'responding' | 'finishing' | 'done';

/** One of the two is called, once. */
export interface ExchangeObserver {
  /** The last byte is written, or the client's socket is closed. */
  complete(): void;
  /** Nothing was sent to the client yet. */
  error(error: GatewayError): void;
}

/**
 * Forwards one call: the request to the provider, the response to the client, and errors of either side. It is the undici
 * handler of its own dispatch, so that a chunk goes from the provider's socket to the client's in one hop.
 */
export class Exchange implements BodyOwner, PooledCall {
  /** Set by the pool; null again once the call no longer uses it. */
  connection: PooledCall['connection'] = null;
  phase: ExchangePhase = 'receiving';
  /** The client has disconnected, but the call continues: so that a retry can get its response, or its usage is read. */
  protected clientLeft = false;
  /** Bytes of the response body; null if the provider sent no length. */
  protected expectedBytes: number | null = null;
  /** When the whole request was sent (monotonic ms). */
  private sentAt: number | null = null;
  protected body: StreamedBody | null = null;
  protected interim: InterimResponses | null = null;
  readonly writer: ResponseWriter;
  readonly req: Request;
  protected readonly res: Response;
  protected readonly recorder: ResponseRecorder | null;
  protected pool!: UpstreamPool;
  /** Set with the head of the final response. */
  protected resumeUpstream!: () => void;
  private observer!: ExchangeObserver;

  /** @param record of the present attempt */
  constructor(
    readonly call: Call,
    protected readonly services: ExchangeServices,
    readonly record = call.record,
  ) {
    this.req = call.req;
    this.res = call.res;
    this.recorder = call.recorder;
    this.writer = writerFor(this, services.settings.clientIdleTimeoutMs, this.onClientDrained);
  }

  get isDone(): boolean {
    return this.phase === 'done';
  }

  /** Starts the call. @throws Error if it has ended: a provider must not get it twice */
  run(pool: UpstreamPool, observer: ExchangeObserver): void {
    if (this.phase === 'done')
      throw new Error('A call cannot be sent again; a route can send it to another target.');
    this.observer = observer;
    // The client may have disconnected while its key was looked up; then there is no 'close' event to come.
    if (this.req.socket.destroyed) {
      this.clientLeft = this.call.outlivesClient;
      if (!this.clientLeft) return this.settle();
    }
    this.res.on('close', this.onClientClose);
    this.res.on('timeout', this.onClientIdle);
    this.pool = pool;
    this.sendRequest();
  }

  protected sendRequest(): void {
    sendBody(this, this.services.settings.maxBodyBytes);
  }

  /** Journals the start of the call, unless its key was revoked, or its provider given to another team, while its body was awaited. */
  protected begin(begun: (error: GatewayError | null) => void, isWhole: boolean): void {
    const isValid = this.services.keys.isStillValid(this.req);
    if (isValid instanceof Promise) isValid.then((valid) => this.beginIf(valid, begun, isWhole), begun);
    else this.beginIf(isValid, begun, isWhole);
  }

  private beginIf(isValid: boolean, begun: (error: GatewayError | null) => void, isWhole: boolean): void {
    const { log, providers } = this.services;
    if (!isValid) begun(new GatewayError('invalid_api_key'));
    else if (providers.isOfOtherTeam(this.call.provider.name, this.req.caller.grant.teamId))
      begun(otherTeam('provider'));
    else log.begin(this.record, begun, isWhole);
  }

  send(body: Buffer | StreamedBody | Iterable<Buffer> | null, length?: string): void {
    if (body instanceof StreamedBody) this.body = body;
    if (!this.pool.reserve())
      return this.settle(new GatewayError('overloaded', { message: 'Too many calls in flight. Try again.' }));
    this.begin((error) => {
      if (this.phase !== 'done' && error === null) return this.dispatch(body, length);
      this.pool.cancelReservation();
      if (this.phase !== 'done') this.settle(error!);
    }, Buffer.isBuffer(body));
  }

  protected dispatch(body: Buffer | StreamedBody | Iterable<Buffer> | null, length?: string): void {
    const { req } = this;
    const { provider } = this.call;
    const path = provider.basePath + req.target.upstreamPath;
    const isMarked = req.caller.grant.kind !== 'key' && !provider.forwardsCredentials;
    const raw = isMarked ? withoutTokenMarks(req.rawHeaders) : req.rawHeaders;
    const headers = providerHeaders(provider, req.method, path, raw, body as Buffer | null);
    if (length !== undefined) headers.push('Content-Length', length);
    this.pool.dispatch({ path, method: req.method, headers, body: body as Buffer | null }, this);
  }

  // undici calls these, in this order. It is the raw form of its handler, which keeps header order, case and bytes.
  onConnect(): void {
    if (this.phase === 'receiving') this.phase = 'sending';
  }

  onRequestSent(): void {
    this.sentAt = performance.now();
    this.interim?.start(this.sentAt);
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void, reason: string): boolean {
    if (this.phase === 'done') return true;
    if (hasForeignCoding(rawHeaders)) {
      this.fail(new GatewayError('upstream_invalid_response'), 'upstream_error');
      return true;
    }
    if (status < 200) return this.onInterim(status, rawHeaders);
    this.interim?.stop();
    const headers = responseHeaders(rawHeaders, this.call.provider.secret, this.call.id);
    if (status >= 400) noteRejection(this.call.provider, status, headers);
    this.expectedBytes = bodyLength(this.req.method, status, headers);
    if (this.record.altered !== null) headers.push('x-gateway-altered', this.record.altered);
    const notStored =
      this.recorder?.responded(status, reason, headers, this.expectedBytes, rawHeaders) ?? null;
    if (notStored !== null) headers.push(...notStored);
    this.record.responseBegun(status, headers, this.clientLeft);
    this.resumeUpstream = resume;
    this.phase = 'responding';
    if (this.endIfUnwanted()) return true;
    const mayContinue = this.whenDurable(() => {
      this.writer.writeHead(status, reason, headers, this.expectedBytes !== null);
      return true;
    });
    // The response ends with its head. undici would report a length that a 204 or 304 may still announce (RFC 9110 8.6) as
    // a mismatch.
    if (this.expectedBytes === 0) this.complete();
    return mayContinue;
  }

  onData(chunk: Buffer): boolean {
    if (this.phase === 'done') return true;
    const { record, call } = this;
    record.receivedBytes += chunk.length;
    if (call.finishing === null) record.responseBytes += chunk.length;
    record.copy?.add(chunk);
    if (record.awaitsJob) this.services.log.journalStreamedJob(record);
    this.recorder?.add(chunk);
    if (this.endIfUnwanted()) return true;
    if (call.finishing !== null) {
      call.finishing.received(chunk.length);
      if (!this.isDone && record.receivedBytes === this.expectedBytes) this.complete();
      return true;
    }
    if (record.receivedBytes !== this.expectedBytes) return this.writer.write(chunk) || call.outlivesClient;
    this.complete(chunk);
    return true;
  }

  onComplete(trailers: string[] | null): void {
    if (this.phase === 'done') return;
    // undici's parser would apply framing fields in trailers to the next response on this connection.
    if (trailers !== null && trailers.length > 0) this.abortUpstream();
    this.connection = null;
    this.body?.detach();
    if (this.phase !== 'finishing') this.complete();
  }

  onError(error: Error): void {
    this.abortUpstream();
    if (this.phase === 'done' || this.phase === 'finishing') return;
    if (this.phase === 'responding' && this.expectedBytes === null && isTrailerError(error)) {
      this.onComplete(null);
      return;
    }
    const { code, outcome } = readUpstreamError(error, this.phase !== 'receiving', this.res.headersSent);
    this.fail(new GatewayError(code, { cause: error }), outcome);
  }

  private onInterim(status: number, rawHeaders: Buffer[]): true {
    if (this.interim === null) {
      const onLate = () => this.fail(new GatewayError('upstream_timeout'), 'upstream_timeout');
      this.interim = new InterimResponses(this.services.settings.upstreamHeadersTimeoutMs, onLate);
      if (this.sentAt !== null) this.interim.start(this.sentAt);
    }
    if (!this.interim.add(rawHeaders)) {
      this.fail(new GatewayError('upstream_invalid_response'), 'upstream_error');
    } else if (status === 103) {
      const headers = responseHeaders(rawHeaders, this.call.provider.secret, this.call.id);
      this.whenDurable(() => {
        this.writer.earlyHints(headers);
        return false;
      });
    }
    return true;
  }

  /** Journals the end before the response is stored for retries and before the last write to the client. */
  private complete(last?: Buffer): void {
    this.phase = 'finishing';
    this.record.isWhole = true;
    if (this.call.finishing === null) this.writer.expectEnd(last);
    if (this.phase !== 'finishing') return;
    this.services.log.endThen(this.record, this.clientLeft ? 'client_aborted' : 'completed', () => {
      if (this.phase === 'done') return;
      this.recorder?.complete();
      this.whenDurable(() => {
        this.writer.end(last);
        return false;
      });
      // Later: the provider's connection is free once undici has seen the end of this response.
      if (this.clientLeft) setImmediate(() => this.phase !== 'done' && this.settle());
    });
  }

  /**
   * Runs a step that the client can see: at once, or after the journal's sync (JOURNAL_FSYNC_MS=0), or after the release of
   * the idempotency lock, so that an immediate retry runs. @param step returns true if the provider may continue
   */
  protected whenDurable(step: () => boolean): boolean {
    const durable = this.services.log.durable();
    const released = this.recorder?.beingReleased ?? null;
    if (durable === null && released === null) return step();
    Promise.all([durable, released])
      .then(() => {
        if (this.phase !== 'done' && step()) this.resumeUpstream();
      })
      .catch((error: Error) => this.onError(error));
    return false;
  }

  /** Fails the call: sends an error response if no response has started, otherwise destroys the connection. */
  fail(error: GatewayError, outcome: Outcome): void {
    if (this.phase === 'done') return;
    if (!this.res.headersSent && !this.clientLeft) this.record.status = statusOf(error);
    this.record.errorCause = errorCause(error.cause);
    this.services.log.end(this.record, this.call.finishing === null ? outcome : 'client_aborted', error.code);
    this.detach();
    if (this.clientLeft) this.observer.complete();
    else if (!this.res.headersSent) this.observer.error(error);
    else void this.abortResponse();
  }

  /** Releases the idempotency lock first. */
  private async abortResponse(): Promise<void> {
    if (this.recorder !== null) await this.recorder.close(this.record.outcome === 'interrupted');
    this.writer.abort();
    this.observer.complete();
  }

  /** Everything was written to the client, or its socket is closed. */
  protected readonly onClientClose = (): void => {
    if (this.phase === 'done') return;
    if (this.recorder?.outlivesClient && (this.record.outcome === null || this.phase === 'finishing')) {
      this.clientLeft = true;
      this.writer.detach();
      // `completed` was set ahead of the last write, which the client does not get.
      if (this.phase === 'finishing') this.services.log.end(this.record, 'client_aborted');
      return;
    }
    const [outcome, errorCode] = outcomeOfClose(this.req, this.res);
    if (outcome === 'client_aborted') this.finishOrCancel();
    else {
      this.services.log.end(this.record, outcome, errorCode);
      this.settle();
    }
  };

  /**
   * Whether the response can be read to its end without the client: the provider has the whole request, and the response has
   * not ended.
   */
  protected get mayFinish(): boolean {
    if (this.record.outcome !== null || this.sentAt === null) return false;
    return this.phase === 'sending' || this.phase === 'responding';
  }

  /** The client has disconnected. @returns true if the response is read to its end */
  private finishOrCancel(): boolean {
    const { call } = this;
    const isFinished = call.onDisconnect === 'finish' && this.mayFinish;
    if (isFinished)
      call.finishing = this.services.finishing.start(call.caller.grant.keyId, this.onFinishLimit);
    if (call.finishing === null) {
      this.cancel(isFinished ? 'finish_limit' : undefined);
      return false;
    }
    this.clientLeft = true;
    this.writer.detach();
    // The client may have been slow to read. Deferred: undici's parser, which may run now, cannot be resumed from inside.
    if (this.phase === 'responding') process.nextTick(this.onClientDrained);
    return true;
  }

  private readonly onFinishLimit = (): void => {
    // Once the response is complete, nothing is left to be cancelled.
    if (this.phase === 'sending' || this.phase === 'responding') this.cancel('finish_limit');
  };

  private cancel(errorCode?: string): void {
    this.services.log.end(this.record, 'client_aborted', errorCode);
    this.settle();
  }

  private readonly onClientDrained = (): void => {
    // After the end of the response, the connection may carry another call.
    if (this.phase === 'responding') this.resumeUpstream();
  };

  protected readonly onClientIdle = (): void => {
    if (this.recorder?.outlivesClient) this.writer.abort();
    else this.fail(new GatewayError('request_timeout'), 'client_error');
  };

  /** Ends the call if the client has disconnected, the response cannot be stored for a retry, and it is not read to its end. */
  private endIfUnwanted(): boolean {
    return this.clientLeft && !this.call.outlivesClient && !this.finishOrCancel();
  }

  protected settle(error?: GatewayError): void {
    this.detach();
    if (error === undefined) this.observer.complete();
    else this.observer.error(error);
  }

  /** Releases everything the call holds on both sides. */
  protected detach(): void {
    this.phase = 'done';
    this.call.finishing?.end();
    this.call.finishing = null;
    this.res.off('timeout', this.onClientIdle);
    this.writer.detach();
    this.body?.detach();
    this.interim?.stop();
    this.abortUpstream();
  }

  /** Aborts the connection to the provider if the call still uses it. */
  protected abortUpstream(): void {
    const { connection } = this;
    this.connection = null;
    connection?.abort();
  }
}

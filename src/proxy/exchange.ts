import type { Request, Response } from 'express';
import type { Claim } from '../idempotency/claim.js';
import type { Provider } from '../providers/provider.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { CallRecord } from '../request-log/call-record.js';
import { AnswerWriter } from './response-writer.js';
import type { ExchangeLimits } from './exchange-limits.js';
import { statusOf } from './http/error-response.js';
import { firstHeader, hasForeignCoding, responseHeaders } from './headers.js';
import { type BodyOwner, sendBody } from './request-body.js';
import { UpstreamCall } from './upstream-call.js';
import { isTrailerFault, readUpstreamFault } from './upstream/upstream-error.js';
import type { UpstreamPool } from './upstream/upstream-pool.js';

/** Node's parser gave up on what the client sent; not because the client left in the middle of it. */
const BROKEN_FRAMING = /^HPE_(?!INVALID_EOF_STATE)/;

/**
 * One call's bytes, both ways: the body to the provider, the answer to the client, and what breaks either. It is the
 * undici handler of its own dispatch, so that a chunk goes from the provider's socket to the client's in one hop.
 */
export class Exchange extends UpstreamCall implements BodyOwner {
  private readonly answer: AnswerWriter;
  /** Set with the head of the provider's response. */
  private resumeUpstream: (() => void) | null = null;
  private resolve!: () => void;
  private reject!: (refusal: GatewayError) => void;
  settled = false;
  /** The call runs on for whoever repeats it. */
  private clientLeft = false;
  /** The provider's answer is there to its end. */
  private whole = false;
  /** Bytes of body the provider announced; null: it did not. */
  private expectedBytes: number | null = null;

  constructor(
    readonly req: Request,
    private readonly res: Response,
    protected readonly provider: Provider,
    readonly call: CallRecord,
    readonly claim: Claim | null,
    protected readonly limits: ExchangeLimits,
  ) {
    super();
    this.answer = new AnswerWriter(req, res, limits.clientIdleTimeoutMs, this.onClientDrained);
  }

  /** Scheme, host and port of the provider. */
  get origin(): string {
    return this.provider.origin;
  }

  /**
   * Runs the call to its end.
   *
   * @returns settles when the last byte is out or the client's socket is dead
   * @throws GatewayError when the client has been sent nothing yet and is still there
   */
  run(pool: UpstreamPool): Promise<void> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      const { req, res } = this;
      // While its key was looked up the client may have left; no 'close' is to come then.
      if (req.socket.destroyed) {
        this.settled = true;
        resolve();
        return;
      }
      res.on('close', this.onClientClose);
      res.on('timeout', this.onClientIdle);
      this.pool = pool;
      sendBody(this, this.limits.maxBodyBytes);
    });
  }

  waitForClient(forClient: boolean): void {
    this.answer.waitForClient(forClient);
  }

  tooLarge(): void {
    this.fail(new GatewayError('request_too_large'), 'client_error');
  }

  broken(error: Error): void {
    this.fail(new GatewayError('invalid_request', { cause: error }), 'client_error');
  }

  protected hint(headers: readonly string[]): void {
    this.whenDurable(() => {
      this.answer.earlyHints(headers);
      return false;
    });
  }

  // What undici tells, in its order: the raw form of its handler, which keeps header order, case and bytes.

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void, reason: string): boolean {
    if (this.settled) return true;
    const { req } = this;
    if (hasForeignCoding(rawHeaders)) {
      this.fail(new GatewayError('upstream_invalid_response'), 'upstream_error');
      return true;
    }
    if (status < 200) {
      this.onInterim(status, rawHeaders);
      return true;
    }
    this.endInterim();
    const headers = responseHeaders(rawHeaders, this.provider.secret, req.requestId);
    const length = firstHeader(headers, 'content-length');
    const bodyless = req.method === 'HEAD' || status === 204 || status === 304;
    this.expectedBytes = bodyless ? 0 : length === undefined ? null : Number(length);
    const kept = this.claim?.responded(status, reason, headers, this.expectedBytes) ?? true;
    if (!kept) headers.push('idempotency-stored', 'false');
    this.call.answered({
      status: this.clientLeft ? null : status,
      contentType: firstHeader(headers, 'content-type'),
      contentEncoding: firstHeader(headers, 'content-encoding'),
      providerRequestId: firstHeader(headers, 'x-request-id') ?? firstHeader(headers, 'request-id') ?? null,
    });
    this.resumeUpstream = resume;
    if (this.isInVain()) return true;
    const goOn = this.whenDurable(() => {
      this.answer.head(status, reason, headers, this.expectedBytes !== null);
      return true;
    });
    // It ends with its head. undici takes the length that a 204 or 304 may still announce (RFC 9110 8.6) for one that was
    // not kept.
    if (this.expectedBytes === 0) this.complete();
    return goOn;
  }

  onData(chunk: Buffer): boolean {
    if (this.settled) return true;
    this.call.responseBytes += chunk.length;
    this.call.copy?.add(chunk);
    this.claim?.add(chunk);
    if (this.isInVain()) return true;
    if (this.call.responseBytes !== this.expectedBytes) {
      return this.answer.write(chunk) || this.claim?.outlivesClient === true;
    }
    this.complete(chunk);
    return true;
  }

  onComplete(trailers: string[] | null): void {
    if (this.settled) return;
    // undici's parser would read the next response on this connection by what a trailer field says of framing.
    if (trailers !== null && trailers.length > 0) this.breakUpstream();
    this.connection = null;
    this.body?.letGo();
    if (!this.whole) this.complete();
  }

  /**
   * The end is on record before the answer is kept for repeats and before the write that completes it. What the provider
   * does now is of no matter.
   */
  private complete(last?: Buffer): void {
    this.whole = true;
    this.answer.awaitEnd();
    this.call.endThen(this.verdict, () => {
      if (this.settled) return;
      this.claim?.complete();
      this.whenDurable(() => {
        this.answer.finish(last);
        return false;
      });
      if (this.clientLeft) this.leave();
    });
  }

  onError(fault: Error): void {
    this.breakUpstream();
    if (this.settled || this.whole) return;
    if (this.resumeUpstream !== null && this.expectedBytes === null && isTrailerFault(fault)) {
      this.onComplete(null);
      return;
    }
    const { code, outcome } = readUpstreamFault(fault, this.connected, this.res.headersSent);
    this.fail(new GatewayError(code, { cause: fault }), outcome);
  }

  /**
   * Takes a step on the wire once what is on record is on the disk as well, where that is asked for
   * (JOURNAL_FSYNC_MS=0), and once a client that repeats the call at once may run it, where it may; else right away.
   *
   * @param step tells whether the provider may go on
   */
  private whenDurable(step: () => boolean): boolean {
    const durable = this.call.durable();
    const released = this.claim?.beingReleased ?? null;
    if (durable === null && released === null) return step();
    Promise.all([durable, released])
      .then(() => {
        if (!this.settled && step()) this.resumeUpstream!();
      })
      .catch((fault: Error) => this.onError(fault));
    return false;
  }

  /** Ends the call for a fault: with an answer of ours while none has begun, else by breaking the connection. */
  protected fail(
    refusal: GatewayError,
    outcome: 'client_error' | 'upstream_error' | 'upstream_timeout' | 'truncated',
  ): void {
    if (this.settled) return;
    if (!this.res.headersSent && !this.clientLeft) this.call.status = statusOf(refusal);
    this.call.end(outcome, refusal.code);
    this.settle();
    if (this.clientLeft) this.resolve();
    else if (!this.res.headersSent) this.reject(refusal);
    else if (this.claim === null) this.breakOff();
    // Else a client that comes again at once would be told that its call still runs.
    else void this.claim.close(this.call.outcome === 'interrupted').then(() => this.breakOff());
  }

  /** Ends a call of which nothing was forwarded. */
  protected refuse(refusal: GatewayError): void {
    this.settle();
    this.reject(refusal);
  }

  private breakOff(): void {
    this.answer.breakOff();
    this.resolve();
  }

  /** Everything was flushed to the client, or its socket is dead. */
  private readonly onClientClose = (): void => {
    if (this.settled) return;
    if (this.claim?.outlivesClient && (this.call.outcome === null || this.whole)) {
      this.clientLeft = true;
      this.answer.letGo();
      // Its end is about to be journalled.
      if (this.whole) this.call.end(this.verdict);
      return;
    }
    const { code = '' } = (this.req.socket.errored ?? {}) as { code?: string };
    if (this.res.writableFinished) this.call.end('completed');
    else if (BROKEN_FRAMING.test(code)) this.call.end('client_error', 'invalid_request');
    else this.call.end('client_aborted');
    this.leave();
  };

  private readonly onClientDrained = (): void => {
    // Past its end the connection is another call's.
    if (!this.whole) this.resumeUpstream!();
  };

  private readonly onClientIdle = (): void => {
    if (this.claim?.outlivesClient) this.answer.breakOff();
    else this.fail(new GatewayError('request_timeout'), 'client_error');
  };

  /** What there is to say of an answer that is there to its end. */
  private get verdict(): 'completed' | 'client_aborted' {
    return this.clientLeft ? 'client_aborted' : 'completed';
  }

  /** Ends a call whose client has left and whose answer turns out not to be kept for a repeat. */
  private isInVain(): boolean {
    if (!this.clientLeft || this.claim!.outlivesClient) return false;
    this.call.end('client_aborted');
    this.leave();
    return true;
  }

  private leave(): void {
    this.settle();
    this.resolve();
  }

  private settle(): void {
    this.settled = true;
    this.res.off('close', this.onClientClose);
    this.res.off('timeout', this.onClientIdle);
    this.answer.letGo();
    this.body?.letGo();
    this.endInterim();
    this.breakUpstream();
  }
}

import type { Request } from 'express';
import type { Provider } from '../providers/provider.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { CallRecord } from '../request-log/call-record.js';
import type { RequestLogService } from '../request-log/request-log.service.js';
import type { ExchangeLimits } from './exchange-limits.js';
import { requestHeaders, responseHeaders } from './headers.js';
import { InterimResponses } from './upstream/interim-responses.js';
import { StreamedBody } from './streamed-body.js';
import type { PooledCall, UpstreamPool } from './upstream/upstream-pool.js';

/** One call's dealings with its provider up to the head of the final response: its connection, its request, what is interim. */
export abstract class UpstreamCall implements PooledCall {
  connection: PooledCall['connection'] = null;
  abstract readonly settled: boolean;
  protected abstract readonly req: Request;
  protected abstract readonly call: CallRecord;
  protected abstract readonly log: RequestLogService;
  protected abstract readonly provider: Provider;
  protected abstract readonly limits: ExchangeLimits;
  protected pool!: UpstreamPool;
  protected body: StreamedBody | null = null;
  /** A connection carries the request. */
  protected connected = false;
  /** When the request was sent to its end (monotonic ms). */
  private sentAt: number | null = null;
  private interim: InterimResponses | null = null;

  /** Ends a call of which nothing was forwarded. */
  protected abstract refuse(refusal: GatewayError): void;
  /** Ends a call that was forwarded. */
  protected abstract fail(refusal: GatewayError, outcome: 'upstream_error' | 'upstream_timeout'): void;
  /** Passes headers of a 103 on. */
  protected abstract hint(headers: readonly string[]): void;

  /** Begins the call at the provider. @param length the body's, as the client announced it */
  send(body: Buffer | StreamedBody | null, length?: string): void {
    const { req, provider, pool } = this;
    if (body instanceof StreamedBody) this.body = body;
    if (!pool.reserve()) {
      this.refuse(
        new GatewayError('overloaded', { message: 'Too many calls are being forwarded right now.' }),
      );
      return;
    }
    this.log.begin(this.call, (refusal) => {
      if (this.settled || refusal !== null) {
        pool.cancelReservation();
        if (!this.settled) this.refuse(refusal!);
        return;
      }
      const headers = requestHeaders(req.rawHeaders, provider.credential);
      if (length !== undefined) headers.push('Content-Length', length);
      pool.dispatch(
        {
          path: provider.basePath + req.target.upstreamPath,
          method: req.method,
          headers,
          body: body as Buffer | null,
        },
        this,
      );
    });
  }

  onConnect(): void {
    this.connected = true;
  }

  onRequestSent(): void {
    this.sentAt = performance.now();
    this.interim?.start(this.sentAt);
  }

  protected onInterim(status: number, rawHeaders: Buffer[]): void {
    if (this.interim === null) {
      this.interim = new InterimResponses(this.limits.upstreamHeadersTimeoutMs, () => {
        this.fail(new GatewayError('upstream_timeout'), 'upstream_timeout');
      });
      if (this.sentAt !== null) this.interim.start(this.sentAt);
    }
    if (!this.interim.add(rawHeaders)) {
      this.fail(new GatewayError('upstream_invalid_response'), 'upstream_error');
    } else if (status === 103) {
      this.hint(responseHeaders(rawHeaders, this.provider.secret, this.req.requestId));
    }
  }

  /** No interim response is to come any more. */
  protected endInterim(): void {
    this.interim?.stop();
    this.interim = null;
  }

  /** Takes the connection away from the call, if it still has it. */
  protected breakUpstream(): void {
    const { connection } = this;
    this.connection = null;
    connection?.abort();
  }
}

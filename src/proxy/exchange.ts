import type { EventEmitter } from 'node:events';
import { STATUS_CODES } from 'node:http';
import type { Request, Response } from 'express';
import type { Dispatcher } from 'undici';
import type { Provider } from '../providers/provider.js';
import { Refusal } from '../refusal.js';
import type { CallRecord } from '../request-log/call-record.js';
import { statusOf } from './gateway-errors.js';
import { firstHeader, requestHeaders, responseHeaders } from './headers.js';
import { StreamedBody } from './streamed-body.js';
import { readUpstreamFault } from './upstream-fault.js';
import type { ConnectAttempt } from './upstream-connector.js';

/** A body up to this size with a known length is gathered and sent in one write; measured to be the cheapest way. */
const GATHER_BYTES = 262_144;
const NOTHING = Buffer.alloc(0);
/** RFC 9112 4: a reason phrase is visible ASCII, spaces and tabs; undici reads it as UTF-8. */
const ASCII_REASON = /^[\t\x20-\x7e]*$/;
/** Node's parser gave up on what the client sent; not because the client left in the middle of it. */
const BROKEN_FRAMING = /^HPE_(?!INVALID_EOF_STATE)/;

export interface ExchangeLimits {
  /** Largest request body in bytes. */
  maxBodyBytes: number;
  /** Milliseconds without a byte from or to the client while it is the client that is waited for. */
  clientIdleTimeoutMs: number;
}

/**
 * One call's bytes, both ways: the body to the provider, the answer to the client, and what breaks either. It is the
 * undici handler of its own dispatch, so that a chunk goes from the provider's socket to the client's in one hop.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Set by the connection this call waits for. */
  attempt: ConnectAttempt | null = null;
  private abortUpstream: ((fault?: Error) => void) | null = null;
  private resumeUpstream: (() => void) | null = null;
  private body: StreamedBody | null = null;
  private resolve!: () => void;
  private reject!: (refusal: Refusal) => void;
  private settled = false;
  private connected = false;
  private bodyStarted = false;
  /** The provider's answer is there to its end. */
  private whole = false;
  private clientAwaited = false;
  /** Whose 'drain' is waited for. */
  private drained: EventEmitter | null = null;
  /** Bytes of body the provider announced; null: it did not. */
  private expectedBytes: number | null = null;

  constructor(
    private readonly req: Request,
    private readonly res: Response,
    private readonly provider: Provider,
    private readonly call: CallRecord,
    private readonly limits: ExchangeLimits,
  ) {}

  /** Scheme, host and port of the provider. */
  get origin(): string {
    return this.provider.origin;
  }

  /**
   * Runs the call to its end.
   *
   * @returns settles when the last byte is out or the client's socket is dead
   * @throws Refusal when the client has been sent nothing yet and is still there
   */
  run(dispatcher: Dispatcher): Promise<void> {
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
      // Behind another response on its connection: the timer is that one's until this one's turn.
      if (res.socket === null) res.once('socket', this.onTurn);
      // RFC 9112 6.1: no Transfer-Encoding towards HTTP/1.0; Node would send it to a client that says `TE: chunked`.
      if (req.httpVersionMinor === 0) res.useChunkedEncodingByDefault = false;
      const announced = req.headers['content-length'];
      if (announced === undefined && req.headers['transfer-encoding'] === undefined) {
        this.waitForClient(false);
        this.dispatch(dispatcher, null);
      } else if (announced !== undefined && Number(announced) <= GATHER_BYTES) {
        this.waitForClient(true);
        this.gather(dispatcher, announced);
      } else {
        this.body = new StreamedBody(req, this.onRequestBytes, (forClient) => this.waitForClient(forClient));
        this.dispatch(dispatcher, this.body, announced);
      }
    });
  }

  private gather(dispatcher: Dispatcher, announced: string): void {
    const chunks: Buffer[] = [];
    this.req.on('data', (chunk: Buffer) => {
      this.call.requestBytes += chunk.length;
      chunks.push(chunk);
    });
    this.req.on('end', () => {
      if (this.settled) return;
      this.waitForClient(false);
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
      this.call.requested(body);
      this.dispatch(dispatcher, body, announced);
    });
  }

  private dispatch(dispatcher: Dispatcher, body: Buffer | StreamedBody | null, length?: string): void {
    const { req, provider } = this;
    const headers = requestHeaders(req.rawHeaders, req.caller.key, provider.credential);
    if (length !== undefined) headers.push('Content-Length', length);
    try {
      this.call.begin();
    } catch (refusal) {
      this.settle();
      this.reject(refusal as Refusal);
      return;
    }
    dispatcher.dispatch(
      {
        path: provider.basePath + req.target.upstreamPath,
        method: req.method,
        headers,
        body: body as Buffer | null,
      },
      this,
    );
  }

  // What undici tells, in its order: the raw form of its handler, which keeps header order, case and bytes.

  onConnect(abort: (fault?: Error) => void): void {
    this.connected = true;
    if (this.settled) abort();
    else this.abortUpstream = abort;
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void, reason: string): boolean {
    if (this.settled) return true;
    const { res, req } = this;
    if (hasForeignCoding(rawHeaders)) {
      this.fail(new Refusal('upstream_invalid_response'), 'upstream_error');
      return true;
    }
    const headers = responseHeaders(rawHeaders, this.provider.secret, req.requestId);
    if (status < 200) {
      if (status === 103) {
        this.whenDurable(() => {
          this.passEarlyHints(headers);
          return false;
        });
      }
      return true;
    }
    const length = firstHeader(headers, 'content-length');
    const bodyless = req.method === 'HEAD' || status === 204 || status === 304;
    this.expectedBytes = bodyless ? 0 : length === undefined ? null : Number(length);
    this.call.answered({
      status,
      contentType: firstHeader(headers, 'content-type'),
      contentEncoding: firstHeader(headers, 'content-encoding'),
      providerRequestId: firstHeader(headers, 'x-request-id') ?? firstHeader(headers, 'request-id') ?? null,
    });
    this.resumeUpstream = resume;
    if (this.expectedBytes === 0) this.call.end('completed');
    const goOn = this.whenDurable(() => {
      res.sendDate = false;
      res.writeHead(status, ASCII_REASON.test(reason) ? reason : (STATUS_CODES[status] ?? ''), headers);
      // The head waits for the first chunk of the same read, never for the next read.
      process.nextTick(flushHead, this);
      return true;
    });
    // These end with their head (RFC 9112 6.3). undici takes the length they may still announce (RFC 9110 8.6) for one
    // that was not kept.
    if (status === 204 || status === 304) this.onComplete();
    return goOn;
  }

  onData(chunk: Buffer): boolean {
    if (this.settled) return true;
    this.call.responseBytes += chunk.length;
    this.call.copy.add(chunk);
    if (this.call.responseBytes !== this.expectedBytes) return this.write(chunk);
    // The end is on record before the write that completes the answer; what the provider does now is of no matter.
    this.call.end('completed');
    this.whole = true;
    return this.whenDurable(() => {
      const more = this.write(chunk);
      this.finish();
      return more;
    });
  }

  onComplete(): void {
    if (this.settled) return;
    this.abortUpstream = null;
    this.body?.letGo();
    if (this.whole) return;
    this.whole = true;
    this.call.end('completed');
    this.whenDurable(() => {
      this.finish();
      return false;
    });
  }

  onError(fault: Error): void {
    if (this.settled || this.whole) return;
    this.abortUpstream = null;
    const { code, outcome } = readUpstreamFault(fault, this.connected, this.res.headersSent);
    this.fail(new Refusal(code, { cause: fault }), outcome);
  }

  /** True when more may come at once. */
  private write(chunk: Buffer): boolean {
    this.bodyStarted = true;
    if (this.res.write(chunk)) return true;
    this.awaitDrain();
    return false;
  }

  private finish(): void {
    this.bodyStarted = true;
    this.res.end();
    if (this.res.writableLength > 0) this.waitForClient(true);
  }

  /** The socket's own word, not the response's: Node says 'drain' there also when a pipelined answer is written. */
  private awaitDrain(): void {
    this.waitForClient(true);
    this.drained = this.res.socket ?? this.res;
    this.drained.once('drain', this.onDrain);
  }

  /**
   * Takes a step on the wire once what is on record is on the disk as well, where that is asked for
   * (JOURNAL_FSYNC_MS=0); else at once.
   *
   * @param step tells whether the provider may go on
   */
  private whenDurable(step: () => boolean): boolean {
    const durable = this.call.durable();
    if (durable === null) return step();
    durable
      .then(() => {
        if (!this.settled && step()) this.resumeUpstream!();
      })
      .catch((fault: Error) => this.abortUpstream?.(fault));
    return false;
  }

  /** Sends the head alone when no chunk came with it. An empty chunk, for flushHeaders() would send it as UTF-8. */
  flushHead(): void {
    if (!this.bodyStarted && !this.settled) this.res.write(NOTHING);
  }

  /** The client has taken what it was sent. */
  resume(): void {
    if (!this.settled) this.resumeUpstream!();
  }

  /** RFC 8297: hints may go to HTTP/1.1 clients whose turn on the connection it is. */
  private passEarlyHints(headers: readonly string[]): void {
    const { res, req } = this;
    let links = '';
    for (let i = 0; i < headers.length; i += 2) {
      if (headers[i]!.toLowerCase() === 'link') links += `${headers[i]}: ${headers[i + 1]}\r\n`;
    }
    if (links === '' || req.httpVersionMinor === 0 || res.socket === null || res.headersSent) return;
    res.socket.write(`HTTP/1.1 103 Early Hints\r\n${links}\r\n`, 'latin1');
  }

  /** Ends the call for a fault: with an answer of ours while none has begun, else by breaking the connection. */
  private fail(
    refusal: Refusal,
    outcome: 'client_error' | 'upstream_error' | 'upstream_timeout' | 'truncated',
  ): void {
    if (this.settled) return;
    if (!this.res.headersSent) this.call.status = statusOf(refusal.code);
    this.call.end(outcome, refusal.code);
    this.settle();
    if (this.res.headersSent) {
      this.breakOff();
      this.resolve();
      return;
    }
    this.reject(refusal);
  }

  /** Makes the break visible: an answer framed by the end of its connection must not end like a whole one. */
  private breakOff(): void {
    const { res } = this;
    if (res.chunkedEncoding || this.expectedBytes !== null || res.socket === null) res.destroy();
    else res.socket.resetAndDestroy();
  }

  private readonly onRequestBytes = (count: number): void => {
    this.call.requestBytes += count;
    if (this.call.requestBytes > this.limits.maxBodyBytes) {
      this.fail(new Refusal('request_too_large'), 'client_error');
    }
  };

  private readonly onDrain = (): void => {
    this.drained = null;
    if (this.settled) return;
    if (this.res.socket?.writableNeedDrain) {
      this.awaitDrain();
      return;
    }
    this.waitForClient(false);
    // Not at once: the drain may have been said while undici's parser runs, which cannot be resumed from inside.
    process.nextTick(resumeUpstream, this);
  };

  /** Everything was flushed to the client, or its socket is dead. */
  private readonly onClientClose = (): void => {
    if (this.settled) return;
    const { code = '' } = (this.req.socket.errored ?? {}) as { code?: string };
    if (this.res.writableFinished) this.call.end('completed');
    else if (BROKEN_FRAMING.test(code)) this.call.end('client_error', 'invalid_request');
    else this.call.end('client_aborted');
    this.settle();
    this.resolve();
  };

  private readonly onClientIdle = (): void => {
    this.fail(new Refusal('request_timeout'), 'client_error');
  };

  /** Arms the client's idle time while it is the client that must act, and lifts it while the provider must. */
  private waitForClient(forClient: boolean): void {
    this.clientAwaited = forClient;
    const { socket } = this.res;
    const ms = forClient ? this.limits.clientIdleTimeoutMs : 0;
    if (socket !== null && socket.timeout !== ms) socket.setTimeout(ms);
  }

  private readonly onTurn = (): void => {
    if (!this.settled) this.waitForClient(this.clientAwaited);
  };

  private settle(): void {
    this.settled = true;
    this.res.off('close', this.onClientClose);
    this.res.off('timeout', this.onClientIdle);
    this.drained?.off('drain', this.onDrain);
    this.body?.letGo();
    const abort = this.abortUpstream;
    this.abortUpstream = null;
    if (abort !== null) abort();
    else if (!this.connected) this.attempt?.cancel?.();
  }
}

/** A transfer coding other than `chunked`: taken off unread it would leave the client with a body nobody can decode. */
function hasForeignCoding(raw: readonly Buffer[]): boolean {
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length !== 17 || raw[i]!.toString('latin1').toLowerCase() !== 'transfer-encoding') continue;
    if (raw[i + 1]!.toString('latin1').trim().toLowerCase() !== 'chunked') return true;
  }
  return false;
}

function flushHead(exchange: Exchange): void {
  exchange.flushHead();
}

function resumeUpstream(exchange: Exchange): void {
  exchange.resume();
}

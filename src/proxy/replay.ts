import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { firstHeader } from '../platform/raw-headers.js';
import type { StoredAnswer } from '../idempotency/stored-response.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { RequestLogService } from '../request-log/request-log.service.js';
import { ResponseWriter } from './response-writer.js';
import type { ExchangeLimits } from './exchange-limits.js';
import { GATHER_BYTES } from './request-body.js';
import { sendContinue } from './http/expect-continue.js';
import { StreamedBody } from './streamed-body.js';

/** A repeated call's bytes: its body is read and compared, and what its first was answered is written. */
export class Replay {
  private readonly gone = new AbortController();
  private readonly answer: ResponseWriter;
  private readonly hash = createHash('sha256');

  constructor(
    private readonly req: Request,
    private readonly res: Response,
    private readonly log: RequestLogService,
    private readonly limits: ExchangeLimits,
  ) {
    this.answer = new ResponseWriter(req, res, limits.clientIdleTimeoutMs, () => {});
  }

  /**
   * @param find gives the first call's answer, or waits for it while the client does
   * @throws GatewayError while nothing has been sent to the client
   */
  async run(find: (gone: AbortSignal) => Promise<StoredAnswer>): Promise<void> {
    const { req, res, gone } = this;
    if (req.socket.destroyed) return;
    const left = new Promise<void>((resolve) => res.once('close', resolve));
    res.once('close', () => gone.abort());
    if (req.headers.expect !== undefined) sendContinue(req, res);
    await Promise.race([this.readBody(), left]);
    if (gone.signal.aborted) return;
    this.answer.waitForClient(false);
    const stored = await find(gone.signal);
    if (!stored.fingerprint.equals(this.hash.digest())) throw new GatewayError('idempotency_mismatch');
    await this.write(stored);
    await left;
  }

  private async readBody(): Promise<void> {
    const { req, res } = this;
    let fault: GatewayError | null = null;
    const body = new StreamedBody(req, {
      onBytes: (chunk) => {
        req.call.requestBytes += chunk.length;
        if (req.call.requestBytes > this.limits.maxBodyBytes) fault ??= new GatewayError('request_too_large');
      },
      onWaiting: (forClient) => this.answer.waitForClient(forClient),
      onBroken: (cause) => (fault ??= new GatewayError('invalid_request', { cause })),
    });
    const onTimeout = () => {
      fault ??= new GatewayError('request_timeout');
      body.detach();
    };
    res.on('timeout', onTimeout);
    const chunks: Buffer[] = [];
    for await (const chunk of body) {
      if (fault !== null) break;
      this.hash.update(chunk);
      if (req.call.requestBytes <= GATHER_BYTES) chunks.push(chunk);
    }
    res.off('timeout', onTimeout);
    if (fault !== null) throw fault as GatewayError;
    if (req.call.requestBytes <= GATHER_BYTES) req.call.requested(Buffer.concat(chunks));
  }

  private async write({ status, reason, headers, body }: StoredAnswer): Promise<void> {
    const { req, answer } = this;
    const { call } = req;
    await new Promise<void>((resolve, reject) => {
      this.log.begin(call, (refusal) => (refusal === null ? resolve() : reject(refusal)));
    });
    call.responseBegun(status, headers);
    call.responseBytes = body.length;
    this.log.end(call, 'replayed');
    await this.log.durable();
    const ours = [
      'Date',
      new Date().toUTCString(),
      'idempotent-replayed',
      'true',
      'x-gateway-request-id',
      req.requestId,
    ];
    answer.writeHead(
      status,
      reason,
      [...headers, ...ours],
      firstHeader(headers, 'content-length') !== undefined,
    );
    if (body.length > 0) answer.write(body);
    answer.end();
  }
}

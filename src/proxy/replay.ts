import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { StoredResponse } from '../idempotency/stored-response.js';
import { GatewayError } from '../errors/gateway-error.js';
import { AnswerWriter } from './response-writer.js';
import type { ExchangeLimits } from './exchange-limits.js';
import { GATHER_BYTES } from './request-body.js';
import { letBodyCome } from './http/expect-continue.js';
import { StreamedBody } from './streamed-body.js';

/** A repeated call's bytes: its body is read and compared, and what its first was answered is written. */
export class Replay {
  private readonly gone = new AbortController();
  private readonly answer: AnswerWriter;
  private readonly hash = createHash('sha256');

  constructor(
    private readonly req: Request,
    private readonly res: Response,
    private readonly limits: ExchangeLimits,
  ) {
    this.answer = new AnswerWriter(req, res, limits.clientIdleTimeoutMs, () => {});
  }

  /**
   * @param find gives the first call's answer, or waits for it while the client does
   * @throws GatewayError while nothing has been sent to the client
   */
  async run(find: (gone: AbortSignal) => Promise<StoredResponse>): Promise<void> {
    const { req, res, gone } = this;
    if (req.socket.destroyed) return;
    const left = new Promise<void>((resolve) => res.once('close', resolve));
    res.once('close', () => gone.abort());
    if (req.headers.expect !== undefined) letBodyCome(req, res);
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
      body.letGo();
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

  private async write({ status, reason, headers, body }: StoredResponse): Promise<void> {
    const { req, answer } = this;
    const { call } = req;
    await new Promise<void>((resolve, reject) => {
      call.begin((refusal) => (refusal === null ? resolve() : reject(refusal)));
    });
    const typed = new Map<string, string>();
    for (let i = 0; i < headers.length; i += 2) typed.set(headers[i]!.toLowerCase(), headers[i + 1]!);
    call.answered({
      status,
      contentType: typed.get('content-type'),
      contentEncoding: typed.get('content-encoding'),
      providerRequestId: typed.get('x-request-id') ?? typed.get('request-id') ?? null,
    });
    call.responseBytes = body.length;
    call.end('replayed');
    await call.durable();
    const ours = [
      'Date',
      new Date().toUTCString(),
      'idempotent-replayed',
      'true',
      'x-gateway-request-id',
      req.requestId,
    ];
    answer.head(status, reason, [...headers, ...ours], typed.has('content-length'));
    if (body.length > 0) answer.write(body);
    answer.finish();
  }
}

import { createHash } from 'node:crypto';
import { firstHeader } from '../../platform/raw-headers.js';
import type { StoredResponse } from '../../idempotency/stored-response.js';
import { GatewayError } from '../../errors/gateway-error.js';
import type { RequestLogService } from '../../request-log/request-log.service.js';
import { ResponseWriter } from '../exchange/response-writer.js';
import type { Settings } from '../../config/settings.js';
import type { Call } from '../call.js';
import { StreamedBody } from '../exchange/streamed-body.js';

/** Handles a duplicate request: reads its body, compares it with the original's, and writes the stored response. */
export class Replay {
  private readonly disconnected = new AbortController();
  private readonly writer: ResponseWriter;
  private readonly hash = createHash('sha256');

  constructor(
    private readonly call: Call,
    private readonly log: RequestLogService,
    private readonly env: Settings,
  ) {
    this.writer = new ResponseWriter(call.req, call.res, env.clientIdleTimeoutMs, () => {});
  }

  /**
   * @param find returns the original's response; waits for it until the signal says that the client has disconnected
   * @throws GatewayError if nothing was sent to the client yet
   */
  async run(find: (disconnected: AbortSignal) => Promise<StoredResponse>): Promise<void> {
    const { call, disconnected } = this;
    const { req, res } = call;
    const gathered = call.admitted?.body ?? null;
    if (req.socket.destroyed) return;
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    res.once('close', () => disconnected.abort());
    if (gathered !== null) this.hash.update(gathered);
    else {
      call.sendContinue();
      await Promise.race([this.readBody(), closed]);
    }
    if (disconnected.signal.aborted) return;
    this.writer.waitForClient(false);
    const stored = await find(disconnected.signal);
    if (!stored.fingerprint.equals(this.hash.digest())) throw new GatewayError('idempotency_mismatch');
    await sendStored(call, this.writer, this.log, stored, 'replayed', ['idempotent-replayed', 'true']);
    await closed;
  }

  private async readBody(): Promise<void> {
    const { res, record } = this.call;
    let error: GatewayError | null = null;
    const body = new StreamedBody(this.call, {
      onBytes: (chunk) => {
        record.requestChunkPassed(chunk);
        if (record.requestBytes > this.env.maxBodyBytes) error ??= new GatewayError('request_too_large');
      },
      onWaiting: (forClient) => this.writer.waitForClient(forClient),
      onBroken: (cause) => (error ??= new GatewayError('invalid_request', { cause })),
    });
    const onTimeout = () => {
      error ??= new GatewayError('request_timeout');
      body.detach();
    };
    res.on('timeout', onTimeout);
    for await (const chunk of body) {
      if (error !== null) break;
      this.hash.update(chunk);
    }
    res.off('timeout', onTimeout);
    if (error !== null) throw error as GatewayError;
  }
}

/**
 * Sends a stored response, which leaves a row with this outcome.
 *
 * @param added flat raw headers that say where the response comes from
 * @throws GatewayError if nothing was sent to the client yet
 */
export async function sendStored(
  call: Call,
  writer: ResponseWriter,
  log: RequestLogService,
  { status, reason, headers, body }: StoredResponse,
  outcome: 'replayed' | 'cached',
  added: readonly string[],
): Promise<void> {
  const { record } = call;
  await new Promise<void>((resolve, reject) => {
    log.begin(record, (error) => (error === null ? resolve() : reject(error)));
  });
  record.responseBegun(status, headers);
  // The tokens are those of another call: of one in the cache they say what is saved.
  if (outcome === 'cached') record.copy?.add(body);
  else {
    record.copy?.discard();
    record.copy = null;
  }
  record.headUsage = null;
  record.responseBytes = body.length;
  log.end(record, outcome);
  await log.durable();
  const own = ['Date', new Date().toUTCString(), ...added, 'x-gateway-request-id', call.id];
  if (record.altered !== null) own.push('x-gateway-altered', record.altered);
  writer.writeHead(
    status,
    reason,
    [...headers, ...own],
    firstHeader(headers, 'content-length') !== undefined,
  );
  if (body.length > 0) writer.write(body);
  writer.end();
}

import { GatewayError } from '../../errors/gateway-error.js';
import { firstHeader } from '../../platform/raw-headers.js';
import type { CallRecord } from '../../request-log/call-record.js';
import { decoderFor } from '../../bodies/usage/content-coding.js';
import type { Call } from '../call.js';
import { ResponseWriter } from './response-writer.js';

/** The largest response that is changed, compressed or not. */
const MAX_BYTES = 8_388_608;

/** What a response is written for. */
export interface ResponseOwner {
  readonly call: Call;
  /** Of the present attempt. */
  readonly record: CallRecord;
  /** Fails the call. */
  fail(error: GatewayError, outcome: 'upstream_error'): void;
}

interface Head {
  status: number;
  reason: string;
  headers: string[];
  framedByLength: boolean;
}

/** The writer of a response. @param onDrained called when the client has read what was written */
export function writerFor(
  owner: ResponseOwner,
  idleTimeoutMs: number,
  onDrained: () => void,
): ResponseWriter {
  const { req, res, admitted } = owner.call;
  return admitted === null || admitted.responseFilter === null
    ? new ResponseWriter(req, res, idleTimeoutMs, onDrained)
    : new FilteredResponse(owner, idleTimeoutMs, onDrained);
}

/**
 * Gathers a successful response and sends what its filter makes of it. A response that the filter leaves as it is keeps its
 * bytes and headers, its compression included. One that cannot be read is not sent.
 */
class FilteredResponse extends ResponseWriter {
  private head: Head | null = null;
  private chunks: Buffer[] = [];
  private length = 0;

  constructor(
    private readonly owner: ResponseOwner,
    idleTimeoutMs: number,
    onDrained: () => void,
  ) {
    super(owner.call.req, owner.call.res, idleTimeoutMs, onDrained);
  }

  override writeHead(status: number, reason: string, headers: string[], framedByLength: boolean): void {
    if (status >= 200 && status < 300) this.head = { status, reason, headers, framedByLength };
    else super.writeHead(status, reason, headers, framedByLength);
  }

  override write(chunk: Buffer): boolean {
    if (this.head === null) return super.write(chunk);
    // undici reuses the memory of its chunks.
    this.chunks.push(Buffer.from(chunk));
    this.length += chunk.length;
    if (this.length > MAX_BYTES) this.reject(new Error(`it has more than ${MAX_BYTES} bytes`));
    return true;
  }

  override expectEnd(last?: Buffer): void {
    super.expectEnd();
    if (this.head === null) return;
    if (last !== undefined) this.chunks.push(Buffer.from(last));
    const body = Buffer.concat(this.chunks);
    this.chunks = [body];
    try {
      const changed = body.length === 0 ? null : this.filter(this.head, body);
      if (changed !== null) this.change(this.head, changed);
    } catch (error) {
      this.reject(error);
    }
  }

  override end(last?: Buffer): void {
    const { head } = this;
    if (head === null) {
      super.end(last);
      return;
    }
    super.writeHead(head.status, head.reason, head.headers, head.framedByLength);
    super.end(this.chunks[0]);
  }

  private filter({ headers }: Head, body: Buffer): Buffer | null {
    const decoder = decoderFor(firstHeader(headers, 'content-encoding'));
    if (decoder === null) throw new Error('its Content-Encoding is unknown');
    return this.owner.call.admitted!.responseFilter!(decoder?.inflate(body, MAX_BYTES) ?? body);
  }

  private change(head: Head, body: Buffer): void {
    const { record, call } = this.owner;
    const { filtered } = call.admitted!;
    const headers: string[] = [];
    for (let i = 0; i < head.headers.length; i += 2) {
      const name = head.headers[i]!;
      const lower = name.toLowerCase();
      if (lower === 'content-encoding') continue;
      headers.push(name, lower === 'content-length' ? String(body.length) : head.headers[i + 1]!);
    }
    record.altered = filtered;
    record.responseBytes = body.length;
    headers.push('x-gateway-altered', filtered!);
    head.headers = headers;
    this.chunks = [body];
  }

  private reject(cause: unknown): void {
    const message = 'The response of the provider could not be read to apply the rules of this gateway key.';
    this.owner.fail(new GatewayError('upstream_invalid_response', { message, cause }), 'upstream_error');
  }
}

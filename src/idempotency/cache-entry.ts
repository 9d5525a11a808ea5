import { firstHeader } from '../platform/raw-headers.js';
import { BodyCopy, type CopyMemory, LARGEST_STORED_BYTES } from './body-copy.js';
import type { ResponseRecorder } from './response-recorder.js';
import { storedHeaders, type StoredResponse } from './stored-response.js';

/** Events with which a stream of OpenAI or Anthropic reports an error after its status 200. */
const FAILED_STREAM =
  /^event: ?(?:error|response\.(?:failed|incomplete))\s*$|^data: ?\{\s*"(?:error|type": ?"error)"/m;
/** Providers that report an error with the status 200 in JSON. */
const FAILED_JSON = /^\s*\{\s*"(?:error"\s*:\s*[{"]|type"\s*:\s*"error")/;
/** More than the start of a body that reports an error. */
const JSON_START = 256;
const NO_FINGERPRINT = Buffer.alloc(0);

/** Copies the response of one call for the response cache: only a complete one with status 200 is stored. */
export class CacheEntry implements ResponseRecorder {
  readonly outlivesClient = false;
  readonly beingReleased = null;
  private head: Pick<StoredResponse, 'status' | 'reason' | 'headers'> | null = null;
  private readonly copy: BodyCopy;
  private storing: Promise<void> = Promise.resolve();

  /**
   * @param isNamed is a request header, by its lower-case name, part of what identifies a response?
   * @param store stores the response; it never rejects
   */
  constructor(
    memory: CopyMemory,
    private readonly isNamed: (header: string) => boolean,
    private readonly store: (response: StoredResponse) => Promise<void>,
  ) {
    this.copy = new BodyCopy(memory);
  }

  requested(): void {}

  requestArrived(): void {}

  responded(
    status: number,
    reason: string,
    headers: readonly string[],
    declared: number | null,
    raw: readonly Buffer[],
  ): boolean {
    const fits = declared === null || declared <= LARGEST_STORED_BYTES;
    // The end of a response without a length or chunks looks the same as its loss.
    const isFramed = declared !== null || hasChunks(raw);
    if (status !== 200 || !fits || !isFramed || isUnreadableStream(headers)) return true;
    if (!variesOnlyBy(headers, this.isNamed)) return true;
    if (declared === null || this.copy.grow(declared))
      this.head = { status, reason, headers: storedHeaders(headers) };
    return true;
  }

  add(chunk: Buffer): void {
    if (this.head === null || this.copy.add(chunk)) return;
    this.head = null;
    this.copy.drop();
  }

  complete(): void {
    const { head } = this;
    this.head = null;
    if (head === null) return;
    const body = this.copy.bytes;
    if (isEventStream(head.headers) && FAILED_STREAM.test(body.toString('latin1'))) return;
    if (FAILED_JSON.test(body.toString('latin1', 0, JSON_START))) return;
    this.storing = this.store({ ...head, fingerprint: NO_FINGERPRINT, body });
  }

  async close(): Promise<void> {
    this.head = null;
    await this.storing;
    this.copy.drop();
    this.copy.free();
  }
}

function hasChunks(raw: readonly Buffer[]): boolean {
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length === 17 && raw[i]!.toString('latin1').toLowerCase() === 'transfer-encoding')
      return true;
  }
  return false;
}

/** True if `Vary` lists only headers that identify the response (RFC 9110 12.5.5). */
function variesOnlyBy(headers: readonly string[], isNamed: (header: string) => boolean): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length !== 4 || headers[i]!.toLowerCase() !== 'vary') continue;
    const names = headers[i + 1]!.split(',').map((name) => name.trim().toLowerCase());
    if (!names.every((name) => name === '' || isNamed(name))) return false;
  }
  return true;
}

function isEventStream(headers: readonly string[]): boolean {
  return /^text\/event-stream\b/i.test(firstHeader(headers, 'content-type') ?? '');
}

/** An error in a compressed stream would not be seen. */
function isUnreadableStream(headers: readonly string[]): boolean {
  return isEventStream(headers) && (firstHeader(headers, 'content-encoding') ?? 'identity') !== 'identity';
}

import { firstHeader } from '../platform/raw-headers.js';
import type { FairShares, Owner } from './fair-shares.js';
import { BodyCopy } from './body-copy.js';
import type { ResponseRecorder } from './response-recorder.js';
import type { StoreFailure } from './store-failures.service.js';
import { storedHeaders, type StoredResponse } from './stored-response.js';

/** Events with which a stream of OpenAI or Anthropic reports an error after its status 200. */
const FAILED_STREAM =
  /^event: ?(?:error|response\.(?:failed|incomplete))\s*$|^data: ?\{\s*"(?:error|type": ?"error)"/m;
/** Providers that report an error with the status 200 in JSON. */
const FAILED_JSON = /^\s*\{\s*"(?:error"\s*:\s*[{"]|type"\s*:\s*"error")/;
/** More than the start of a body that reports an error. */
const JSON_START = 256;
const NO_FINGERPRINT = Buffer.alloc(0);
const NOT_STORED = ['x-gateway-cache', 'not-stored'] as const;

/** Where an entry is stored. */
export interface EntryStore {
  readonly memory: FairShares;
  /** Could a response of this many bytes be stored? */
  hasStorage(bytes: number): boolean;
  /** Stores the response. It never rejects. */
  store(response: StoredResponse): Promise<void>;
  /** Reports a response that is not stored. */
  failed(reason: StoreFailure): void;
}

/** Copies the response of one call for the response cache: only a complete one with status 200 is stored. */
export class CacheEntry implements ResponseRecorder {
  readonly outlivesClient = false;
  readonly beingReleased = null;
  private head: Pick<StoredResponse, 'status' | 'reason' | 'headers'> | null = null;
  private readonly copy: BodyCopy;
  private storing: Promise<void> = Promise.resolve();

  /**
   * @param isNamed is a request header, by its lower-case name, part of what identifies a response?
   */
  constructor(
    owner: Owner,
    private readonly isNamed: (header: string) => boolean,
    private readonly store: EntryStore,
  ) {
    this.copy = new BodyCopy(store.memory, owner);
  }

  requested(): void {}

  requestArrived(): void {}

  responded(
    status: number,
    reason: string,
    headers: readonly string[],
    declared: number | null,
    raw: readonly Buffer[],
  ): readonly string[] | null {
    // The end of a response without a length or chunks looks the same as its loss.
    const isFramed = declared !== null || hasChunks(raw);
    if (status !== 200 || !isFramed || isUnreadableStream(headers)) return null;
    if (!variesOnlyBy(headers, this.isNamed)) return null;
    const hasStorage = this.store.hasStorage(declared ?? 0);
    const problem = declared === null ? null : this.copy.grow(declared);
    if (problem !== null || !hasStorage) {
      this.store.failed(problem ?? 'storage');
      return NOT_STORED;
    }
    this.head = { status, reason, headers: storedHeaders(headers) };
    return null;
  }

  add(chunk: Buffer): void {
    const problem = this.head === null ? null : this.copy.add(chunk);
    if (problem === null) return;
    this.store.failed(problem);
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
    this.storing = this.store.store({ ...head, fingerprint: NO_FINGERPRINT, body });
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

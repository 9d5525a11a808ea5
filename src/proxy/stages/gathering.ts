import { Injectable } from '@nestjs/common';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { FairShares } from '../../idempotency/fair-shares.js';
import type { Call } from '../call.js';
import { ResponseWriter } from '../exchange/response-writer.js';
import { patience } from '../../platform/patience.js';

/** The largest body that is gathered for a policy. */
const MAX_GATHERED = 33_554_432;
/** The largest body, and what a caller is told of a larger one. */
export interface GatheringLimit {
  readonly bytes: number;
  readonly message: string;
}

/** All bodies that a process holds for policies. */
const MAX_MEMORY = 268_435_456;

/**
 * How long a body may take to arrive. While it is gathered it holds memory, so the silence that CLIENT_IDLE_TIMEOUT_MS
 * allows would be too long, and a byte now and then would renew it. A line with 64 kbit/s is fast enough.
 */
const BYTES_PER_SECOND = 8_192;
/** Every body has this time, and that for its length besides. */
const START = patience('a gathered body', 60_000);
/** Longest silence, if CLIENT_IDLE_TIMEOUT_MS is not shorter. */
const SILENCE = patience('the next bytes of a gathered body', 120_000);

export const OF_POLICIES: GatheringLimit = {
  bytes: MAX_GATHERED,
  message:
    'This key has rules that are checked against the request body, which may then have at most 32 MiB.',
};

const OVERLOADED =
  'The gateway holds as many request bodies of this gateway key or its team as it can. Try again when some of their calls ' +
  'have ended.';
const TOO_SLOW =
  'The request body did not arrive in time. It is checked before it is forwarded, so it must arrive with at least 64 kbit/s ' +
  'and without long pauses.';

/** Memory of the gathered bodies of this process. A call holds its body until it ends. */
@Injectable()
export class GatheringMemory extends FairShares {
  constructor() {
    super(MAX_MEMORY);
  }
}

/** Reads a whole request body into memory. */
export class Gathering {
  private chunks: Buffer[] = [];
  /** What was read of a body that is too large, if it need not be gathered. */
  prefix: readonly Buffer[] | null = null;
  /** Bytes reserved. */
  private held = 0;
  private readonly writer: ResponseWriter;
  private deadline: NodeJS.Timeout | undefined;
  private resolve!: (body: Buffer | null) => void;
  private reject!: (error: GatewayError) => void;

  /** @param isRequired false: of a body that is too large, only a part is read */
  constructor(
    private readonly call: Call,
    private readonly memory: GatheringMemory,
    private readonly settings: Settings,
    private readonly limit: GatheringLimit,
    private readonly isRequired: boolean,
  ) {
    const idleMs = Math.min(settings.clientIdleTimeoutMs, SILENCE.ms);
    this.writer = new ResponseWriter(call.req, call.res, idleMs, () => {});
  }

  /**
   * @returns the body; null if the client has disconnected, or `prefix` was set because the body need not be gathered
   * @throws GatewayError request_too_large, overloaded, request_timeout; invalid_request for a broken framing
   */
  read(): Promise<Buffer | null> {
    const { call } = this;
    const { req, res, record, bodyError } = call;
    const length = Number(req.headers['content-length'] ?? this.most);
    if (this.isRequired && length > this.most) return Promise.reject(this.tooLarge());
    if (req.socket.destroyed) return Promise.resolve(null);
    if (bodyError !== null) return Promise.reject(broken(bodyError));
    call.sendContinue();
    record.awaitBody();
    record.body.mustBeCertain();
    this.writer.waitForClient(true);
    const ms = START.ms + (Math.min(length, this.most) / BYTES_PER_SECOND) * 1_000;
    // In whole seconds, so that bodies of a similar length share a list of timers: one of its own takes 2 µs more.
    this.deadline = setTimeout(this.onTimeout, Math.ceil(ms / 1_000) * 1_000);
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      req.on('data', this.onData);
      req.on('end', this.onEnd);
      req.on('bodyError', this.onBroken);
      res.on('timeout', this.onTimeout);
      res.on('close', this.onClose);
    });
  }

  /** Frees the memory. */
  release(): void {
    this.memory.free(this.call.caller.grant, this.held);
    this.held = 0;
  }

  private readonly onData = (chunk: Buffer): void => {
    const { record, caller } = this.call;
    record.requestChunkRead(chunk);
    if (!this.isRequired && !this.fits(chunk)) this.leaveRest(chunk);
    else if (record.requestBytes > this.most) this.fail(this.tooLarge());
    else if (!this.isRequired) this.chunks.push(chunk);
    else if (!this.memory.reserve(caller.grant, chunk.length))
      this.fail(new GatewayError('overloaded', { message: OVERLOADED }));
    else {
      this.held += chunk.length;
      this.chunks.push(chunk);
    }
  };

  /** Reserves memory for a chunk. @returns false if there is none, or the body is too large */
  private fits(chunk: Buffer): boolean {
    const { record, caller } = this.call;
    if (record.requestBytes > MAX_GATHERED || !this.memory.reserve(caller.grant, chunk.length)) return false;
    this.held += chunk.length;
    return true;
  }

  private leaveRest(chunk: Buffer): void {
    this.call.req.pause();
    this.detach();
    this.prefix = [...this.chunks, chunk];
    this.chunks = [];
    this.resolve(null);
  }

  private readonly onEnd = (): void => {
    const { chunks } = this;
    // Not held beside the body while the call is forwarded.
    this.chunks = [];
    this.detachFromClient();
    this.writer.waitForClient(false);
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    this.call.record.requestBodyRead();
    this.resolve(body);
  };

  private readonly onBroken = (error: Error): void => this.fail(broken(error));

  private readonly onTimeout = (): void =>
    this.fail(new GatewayError('request_timeout', { message: TOO_SLOW }));

  private readonly onClose = (): void => {
    this.detach();
    this.resolve(null);
  };

  private fail(error: GatewayError): void {
    this.detach();
    this.reject(error);
  }

  private get most(): number {
    return Math.min(this.limit.bytes, this.settings.maxBodyBytes);
  }

  private tooLarge(): GatewayError {
    return new GatewayError('request_too_large', { message: this.limit.message });
  }

  private detach(): void {
    const { req } = this.call;
    req.off('data', this.onData);
    req.off('end', this.onEnd);
    req.off('bodyError', this.onBroken);
    this.detachFromClient();
  }

  /** A request that has ended has no more events of its own. */
  private detachFromClient(): void {
    const { res } = this.call;
    clearTimeout(this.deadline);
    res.off('timeout', this.onTimeout);
    res.off('close', this.onClose);
  }
}

function broken(cause: Error): GatewayError {
  return new GatewayError('invalid_request', { cause });
}

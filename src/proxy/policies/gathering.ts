import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { GatewayError } from '../../errors/gateway-error.js';
import { sendContinue } from '../http/expect-continue.js';
import { ResponseWriter } from '../response-writer.js';

/** The largest body that is gathered for a policy. */
const MOST_GATHERED = 33_554_432;
/** The largest body, and what a caller is told of a larger one. */
export interface GatheringLimit {
  readonly bytes: number;
  readonly message: string;
}

/** All bodies that a process holds for policies. */
const MOST_MEMORY = 268_435_456;
/** Those of one key: it leaves half of the memory to the others. */
const MOST_OF_KEY = MOST_MEMORY / 2;

export const OF_POLICIES: GatheringLimit = {
  bytes: MOST_GATHERED,
  message:
    'This key has rules that are checked against the request body, which may then have at most 32 MiB.',
};

/** Memory of the gathered bodies of this process. A call holds its body until it ends. */
@Injectable()
export class GatheringMemory {
  private used = 0;
  private readonly byKey = new Map<string, number>();

  /** @returns false if there is no memory for this many more bytes of this key */
  reserve(keyId: string, bytes: number): boolean {
    const ofKey = (this.byKey.get(keyId) ?? 0) + bytes;
    if (this.used + bytes > MOST_MEMORY || ofKey > MOST_OF_KEY) return false;
    this.used += bytes;
    this.byKey.set(keyId, ofKey);
    return true;
  }

  free(keyId: string, bytes: number): void {
    if (bytes === 0) return;
    this.used -= bytes;
    const left = this.byKey.get(keyId)! - bytes;
    if (left === 0) this.byKey.delete(keyId);
    else this.byKey.set(keyId, left);
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
  private resolve!: (body: Buffer | null) => void;
  private reject!: (error: GatewayError) => void;

  /** @param isRequired false: of a body that is too large, only a part is read */
  constructor(
    private readonly req: Request,
    private readonly res: Response,
    private readonly memory: GatheringMemory,
    private readonly limits: { maxBodyBytes: number; clientIdleTimeoutMs: number },
    private readonly isRequired: boolean,
    private readonly limit: GatheringLimit,
  ) {
    this.writer = new ResponseWriter(req, res, limits.clientIdleTimeoutMs, () => {});
  }

  /**
   * @returns the body; null if the client has disconnected, or `prefix` was set because the body need not be gathered
   * @throws GatewayError request_too_large, overloaded, request_timeout; invalid_request for a broken framing
   */
  read(): Promise<Buffer | null> {
    const { req, res } = this;
    if (this.isRequired && Number(req.headers['content-length'] ?? 0) > this.most)
      return Promise.reject(this.tooLarge());
    if (req.socket.destroyed) return Promise.resolve(null);
    if (req.bodyError !== undefined) return Promise.reject(broken(req.bodyError));
    if (req.headers.expect !== undefined) sendContinue(req, res);
    req.call.awaitBody();
    this.writer.waitForClient(true);
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
    this.memory.free(this.req.caller.grant.keyId, this.held);
    this.held = 0;
  }

  private readonly onData = (chunk: Buffer): void => {
    const { call, caller } = this.req;
    call.requestChunkRead(chunk);
    if (!this.isRequired && !this.fits(chunk)) this.leaveRest(chunk);
    else if (call.requestBytes > this.most) this.fail(this.tooLarge());
    else if (!this.isRequired) this.chunks.push(chunk);
    else if (!this.memory.reserve(caller.grant.keyId, chunk.length))
      this.fail(new GatewayError('overloaded'));
    else {
      this.held += chunk.length;
      this.chunks.push(chunk);
    }
  };

  /** Reserves memory for a chunk. @returns false if there is none, or the body is too large */
  private fits(chunk: Buffer): boolean {
    const { call, caller } = this.req;
    if (call.requestBytes > MOST_GATHERED || !this.memory.reserve(caller.grant.keyId, chunk.length))
      return false;
    this.held += chunk.length;
    return true;
  }

  private leaveRest(chunk: Buffer): void {
    this.req.pause();
    this.detach();
    this.prefix = [...this.chunks, chunk];
    this.chunks = [];
    this.resolve(null);
  }

  private readonly onEnd = (): void => {
    const { chunks } = this;
    // Not held beside the body while the call is forwarded.
    this.chunks = [];
    this.detach();
    this.writer.waitForClient(false);
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    this.req.call.requestBodyRead();
    this.resolve(body);
  };

  private readonly onBroken = (error: Error): void => this.fail(broken(error));

  private readonly onTimeout = (): void => this.fail(new GatewayError('request_timeout'));

  private readonly onClose = (): void => {
    this.detach();
    this.resolve(null);
  };

  private fail(error: GatewayError): void {
    this.detach();
    this.reject(error);
  }

  private get most(): number {
    return Math.min(this.limit.bytes, this.limits.maxBodyBytes);
  }

  private tooLarge(): GatewayError {
    return new GatewayError('request_too_large', { message: this.limit.message });
  }

  private detach(): void {
    const { req, res } = this;
    req.off('data', this.onData);
    req.off('end', this.onEnd);
    req.off('bodyError', this.onBroken);
    res.off('timeout', this.onTimeout);
    res.off('close', this.onClose);
  }
}

function broken(cause: Error): GatewayError {
  return new GatewayError('invalid_request', { cause });
}

import type { Request } from 'express';
import type { Claim } from '../idempotency/claim.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { CallRecord } from '../request-log/call-record.js';
import type { ExchangePhase } from './exchange-phase.js';
import type { ResponseWriter } from './response-writer.js';
import { StreamedBody } from './streamed-body.js';

/** A body up to this size with a known length is gathered and sent in one write; measured to be the cheapest way. */
export const GATHER_BYTES = 262_144;

/** Whose body it is. */
export interface BodyOwner {
  readonly req: Request;
  readonly call: CallRecord;
  readonly claim: Claim | null;
  /** `done`: the body is no longer needed. */
  readonly phase: ExchangePhase;
  readonly writer: ResponseWriter;
  /** Begins the call at the provider. @param length the body's, as the client announced it */
  send(body: Buffer | StreamedBody | null, length?: string): void;
  /** Fails the call. */
  fail(error: GatewayError, outcome: 'client_error'): void;
}

/** Reads the body in the way that is the cheapest for it. @param mostBytes of a body that is not announced */
export function sendBody(owner: BodyOwner, mostBytes: number): void {
  const { headers } = owner.req;
  const announced = headers['content-length'];
  if (announced === undefined && headers['transfer-encoding'] === undefined) {
    owner.writer.waitForClient(false);
    owner.claim?.requestArrived();
    owner.send(null);
  } else if (announced !== undefined && Number(announced) <= GATHER_BYTES) {
    owner.writer.waitForClient(true);
    gather(owner, announced);
  } else {
    owner.writer.waitForClient(true);
    stream(owner, announced, mostBytes);
  }
}

function gather(owner: BodyOwner, announced: string): void {
  const { req, call, claim } = owner;
  call.awaitBody();
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => {
    call.requestBytes += chunk.length;
    claim?.requested(chunk);
    chunks.push(chunk);
  });
  req.on('end', () => {
    if (owner.phase === 'done') return;
    owner.writer.waitForClient(false);
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    call.requested(body);
    claim?.requestArrived();
    owner.send(body, announced);
  });
}

/** The call begins with the first chunk: until then there is nothing of it that a provider could be sent. */
function stream(owner: BodyOwner, announced: string | undefined, mostBytes: number): void {
  const { req, call, claim } = owner;
  call.awaitBody();
  const body = new StreamedBody(req, {
    onBytes(chunk) {
      call.requestBytes += chunk.length;
      claim?.requested(chunk);
      if (call.requestBytes > mostBytes) owner.fail(new GatewayError('request_too_large'), 'client_error');
    },
    onWaiting: (forClient) => owner.writer.waitForClient(forClient),
    onBegun() {
      call.bodyBegun();
      owner.send(body, announced);
    },
    onArrived: () => claim?.requestArrived(),
    onBroken: (error) => owner.fail(new GatewayError('invalid_request', { cause: error }), 'client_error'),
  });
}

import type { Request } from 'express';
import type { ResponseRecorder } from '../../idempotency/response-recorder.js';
import { GatewayError } from '../../errors/gateway-error.js';
import type { Provider } from '../../providers/provider.js';
import type { CallRecord } from '../../request-log/call-record.js';
import type { ExchangePhase } from './exchange-phase.js';
import type { PolicyCall } from '../policies/policy-call.js';
import type { ResponseWriter } from './response-writer.js';
import { type BodyReader, StreamedBody } from './streamed-body.js';

/** A body of known length up to this size is buffered and sent in one write; measured to be the cheapest. */
export const BUFFERED_BYTES = 262_144;

/** The call that a request body belongs to. */
export interface BodyOwner {
  readonly req: Request;
  readonly call: CallRecord;
  readonly provider: Provider;
  readonly claim: ResponseRecorder | null;
  /** `done`: the body is no longer needed. */
  readonly phase: ExchangePhase;
  readonly writer: ResponseWriter;
  /** What policies made of the call; null if its key has none. */
  readonly admitted: PolicyCall | null;
  /** Sends the request to the provider. @param length the body's Content-Length as the client sent it */
  send(body: Buffer | StreamedBody | Iterable<Buffer> | null, length?: string): void;
  /** Fails the call. */
  fail(error: GatewayError, outcome: 'client_error'): void;
}

/** Reads the request body, buffered or streamed, and sends the request. @param mostBytes limit for a body of unknown length */
export function sendBody(owner: BodyOwner, mostBytes: number): void {
  const { headers } = owner.req;
  const gathered = owner.admitted?.body ?? null;
  const declared = headers['content-length'];
  if (gathered !== null) {
    owner.writer.waitForClient(false);
    owner.claim?.requested(gathered);
    owner.claim?.requestArrived();
    sendGathered(owner);
  } else if (owner.admitted !== null && owner.admitted.prefix !== null) {
    owner.writer.waitForClient(true);
    streamBody(owner, declared, mostBytes, owner.admitted.prefix);
  } else if (declared === undefined && headers['transfer-encoding'] === undefined) {
    owner.writer.waitForClient(false);
    owner.claim?.requestArrived();
    owner.send(null);
  } else if (declared !== undefined && Number(declared) <= BUFFERED_BYTES) {
    owner.writer.waitForClient(true);
    bufferBody(owner, declared);
  } else {
    owner.writer.waitForClient(true);
    streamBody(owner, declared, mostBytes);
  }
}

/** Sends a body that was gathered, or what takes its place. */
export function sendGathered(owner: BodyOwner): void {
  const { body: gathered, replacement } = owner.admitted!;
  const declared = owner.req.headers['content-length'];
  const body = replacement ?? gathered!;
  // A signed body has a known length, and not every service of AWS takes one in chunks.
  if (declared === undefined && owner.provider.signer === null) owner.send(inOneChunk(body));
  else owner.send(body, replacement === null && declared ? declared : String(body.length));
}

/** undici sends an iterable in chunks, and an empty one with Content-Length: 0. */
function* inOneChunk(body: Buffer): Generator<Buffer> {
  if (body.length > 0) yield body;
}

function bufferBody(owner: BodyOwner, declared: string): void {
  const { req, call, claim } = owner;
  call.awaitBody();
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => {
    call.requestChunkRead(chunk);
    claim?.requested(chunk);
    chunks.push(chunk);
  });
  req.on('end', () => {
    if (owner.phase === 'done') return;
    owner.writer.waitForClient(false);
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    call.requestBodyRead();
    claim?.requestArrived();
    owner.send(body, declared);
  });
}

/**
 * Sends the request when the first chunk arrives: before, there is nothing to send.
 *
 * @param prefix chunks that were read before
 */
function streamBody(
  owner: BodyOwner,
  declared: string | undefined,
  mostBytes: number,
  prefix?: readonly Buffer[],
): void {
  const { req, call, claim } = owner;
  call.awaitBody();
  const reader = readerOf(owner, mostBytes);
  reader.onBegun = () => {
    call.bodyBegun();
    owner.send(body, declared);
  };
  const body = new StreamedBody(req, reader, prefix);
  if (prefix === undefined) return;
  for (const chunk of prefix) claim?.requested(chunk);
  body.start();
}

/** Takes the chunks of a body that is streamed. */
export function readerOf(owner: BodyOwner, mostBytes: number): BodyReader {
  const { call, claim } = owner;
  return {
    onBytes(chunk) {
      call.requestChunkPassed(chunk);
      claim?.requested(chunk);
      if (call.requestBytes > mostBytes) owner.fail(new GatewayError('request_too_large'), 'client_error');
    },
    onWaiting: (forClient) => owner.writer.waitForClient(forClient),
    onArrived: () => claim?.requestArrived(),
    onBroken: (error) => owner.fail(new GatewayError('invalid_request', { cause: error }), 'client_error'),
  };
}

import { GatewayError } from '../../errors/gateway-error.js';
import type { CallRecord } from '../../request-log/call-record.js';
import type { Call } from '../call.js';
import type { ResponseWriter } from './response-writer.js';
import { type BodyReader, StreamedBody } from './streamed-body.js';

/** A body of known length up to this size is buffered and sent in one write; measured to be the cheapest. */
export const BUFFERED_BYTES = 262_144;

/** What a request body is read for. */
export interface BodyOwner {
  readonly call: Call;
  /** Of the present attempt. */
  readonly record: CallRecord;
  /** The body is no longer needed. */
  readonly isDone: boolean;
  readonly writer: ResponseWriter;
  /** Sends the request to the provider. @param length the body's Content-Length as the client sent it */
  send(body: Buffer | StreamedBody | Iterable<Buffer> | null, length?: string): void;
  /** Fails the call. */
  fail(error: GatewayError, outcome: 'client_error'): void;
}

/** Reads the request body, buffered or streamed, and sends the request. @param maxBytes limit for a body of unknown length */
export function sendBody(owner: BodyOwner, maxBytes: number): void {
  const { req, admitted, recorder } = owner.call;
  const { headers } = req;
  const gathered = admitted?.body ?? null;
  const declared = headers['content-length'];
  if (gathered !== null) {
    owner.writer.waitForClient(false);
    recorder?.requested(gathered);
    recorder?.requestArrived();
    sendGathered(owner);
  } else if (admitted !== null && admitted.prefix !== null) {
    owner.writer.waitForClient(true);
    streamBody(owner, declared, maxBytes, admitted.prefix);
  } else if (declared === undefined && headers['transfer-encoding'] === undefined) {
    owner.writer.waitForClient(false);
    recorder?.requestArrived();
    owner.send(null);
  } else if (declared !== undefined && Number(declared) <= BUFFERED_BYTES) {
    owner.writer.waitForClient(true);
    bufferBody(owner, declared);
  } else {
    owner.writer.waitForClient(true);
    streamBody(owner, declared, maxBytes);
  }
}

/** Sends a body that was gathered, or what takes its place. */
export function sendGathered(owner: BodyOwner): void {
  const { req, admitted, provider } = owner.call;
  const { body: gathered, replacement } = admitted!;
  const declared = req.headers['content-length'];
  const body = replacement ?? gathered!;
  // A signed body has a known length, and not every service of AWS takes one in chunks.
  if (declared === undefined && !provider.signs) owner.send(inOneChunk(body));
  else owner.send(body, replacement === null && declared ? declared : String(body.length));
}

/** undici sends an iterable in chunks, and an empty one with Content-Length: 0. */
function* inOneChunk(body: Buffer): Generator<Buffer> {
  if (body.length > 0) yield body;
}

function bufferBody(owner: BodyOwner, declared: string): void {
  const { record } = owner;
  const { req, recorder } = owner.call;
  record.awaitBody();
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => {
    record.requestChunkRead(chunk);
    recorder?.requested(chunk);
    chunks.push(chunk);
  });
  req.on('end', () => {
    if (owner.isDone) return;
    owner.writer.waitForClient(false);
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    record.requestBodyRead();
    recorder?.requestArrived();
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
  maxBytes: number,
  prefix?: readonly Buffer[],
): void {
  const { call, record } = owner;
  record.awaitBody();
  const reader = readerOf(owner, maxBytes);
  reader.onBegun = () => {
    record.bodyBegun();
    owner.send(body, declared);
  };
  const body = new StreamedBody(call, reader, prefix);
  if (prefix === undefined) return;
  for (const chunk of prefix) call.recorder?.requested(chunk);
  body.start();
}

/** Takes the chunks of a body that is streamed. */
export function readerOf(owner: BodyOwner, maxBytes: number): BodyReader {
  const { record } = owner;
  const { recorder } = owner.call;
  return {
    onBytes(chunk) {
      record.requestChunkPassed(chunk);
      recorder?.requested(chunk);
      if (record.requestBytes > maxBytes) owner.fail(new GatewayError('request_too_large'), 'client_error');
    },
    onWaiting: (forClient) => owner.writer.waitForClient(forClient),
    onArrived: () => recorder?.requestArrived(),
    onBroken: (error) => owner.fail(new GatewayError('invalid_request', { cause: error }), 'client_error'),
  };
}

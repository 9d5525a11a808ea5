import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import { GatewayError } from '../../errors/gateway-error.js';
import { gatewayErrorAnswer } from './error-response.js';
import { closeAfterResponse, closeLingering, discardInput, isClosing } from './lingering-close.js';
import type { Refusals } from './rejection-log.js';
import { rejectBody } from '../streamed-body.js';

/** Node's error codes for what its parser or its timers refuse, in our terms. */
function refusalFor(error: Error): GatewayError {
  if (error instanceof GatewayError) return error;
  const code: string = (error as { code?: string }).code ?? '';
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError('headers_too_large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('request_timeout');
    case 'HPE_INVALID_URL':
      return new GatewayError('invalid_path');
    default:
      return new GatewayError('invalid_request', { cause: error });
  }
}

/**
 * Answers what never became a request, straight on the socket, and closes it: its framing is lost. Node calls this
 * again for everything that arrives after the fault; only the first time counts.
 */
export function answerParserError(socket: Socket, error: Error, requestId: string, refusals: Refusals): void {
  const { code } = error as { code?: string };
  if (isClosing(socket)) {
    // Whatever still comes is not read; but a client that leaves ends the calls before the refused one.
    if (code === 'HPE_INVALID_EOF_STATE' || code === 'ECONNRESET') socket.destroy(error);
    return;
  }
  // The client has left in the middle of a request; the calls before it on this connection end with it too.
  const left = code === 'ECONNRESET' || (code === 'HPE_INVALID_EOF_STATE' && currentResponse(socket));
  if (!socket.writable || left) {
    socket.destroy(error);
    return;
  }
  // Decided now: later the socket has read more, and earlier requests are gone.
  const bodyless = isHead(socket, error);
  discardInput(socket);
  answerWhenDue(socket, error, requestId, refusals, bodyless);
}

function currentResponse(socket: Socket): ServerResponse | null | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage;
}

/** Requests that arrived whole before the error are answered first. */
function answerWhenDue(
  socket: Socket,
  error: Error,
  requestId: string,
  refusals: Refusals,
  bodyless: boolean,
): void {
  const current = currentResponse(socket);
  if (!current) {
    const refusal = refusalFor(error);
    refusals.ofConnection(refusal, socket, requestId);
    writeAnswer(socket, refusal, requestId, bodyless);
    closeLingering(socket);
  } else if (!current.req.complete) {
    // The error is inside the body of this request. A call that is running learns from it that its client's framing
    // broke, and nothing we say could be told from its response; one that is not yet forwarded is rejected.
    current.shouldKeepAlive = false;
    closeAfterResponse(socket);
    if (!rejectBody(current.req as Request, error)) socket.destroy(error);
  } else {
    // The next request is handled in the tick after this event.
    const next = () => {
      if (!socket.destroyed) answerWhenDue(socket, error, requestId, refusals, bodyless);
    };
    current.once('close', () => process.nextTick(next));
  }
}

/**
 * True if it is certain that the rejected head is one of a HEAD request: it begins the first packet of the connection,
 * and that packet holds no request before it. Any other packet may begin inside a head or a body, and a body that the
 * response announces must come if the request is none of HEAD.
 */
function isHead(socket: Socket, { rawPacket }: Error & { rawPacket?: Buffer }): boolean {
  if (rawPacket?.length !== socket.bytesRead || currentResponse(socket)) return false;
  return /^[\r\n]*HEAD /.test(rawPacket.toString('latin1'));
}

/** @param bodyless the response to HEAD has the headers of any other and no body (RFC 9110 9.3.2) */
function writeAnswer(socket: Socket, refusal: GatewayError, requestId: string, bodyless: boolean): void {
  const { status, reason, headers, body } = gatewayErrorAnswer(refusal, requestId);
  let head = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  head += `Date: ${new Date().toUTCString()}\r\nconnection: close\r\n\r\n`;
  socket.write(bodyless ? head : head + body.toString());
}

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import { GatewayError } from '../../errors/gateway-error.js';
import { gatewayErrorResponse } from './error-response.js';
import { closeAfterResponse, closeLingering, discardInput, isClosing } from './lingering-close.js';
import type { RejectionLog } from './rejection-log.js';
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
export function answerParserError(
  socket: Socket,
  error: Error,
  requestId: string,
  rejections: RejectionLog,
): void {
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
  discardInput(socket);
  answerWhenDue(socket, error, requestId, rejections);
}

function currentResponse(socket: Socket): ServerResponse | null | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage;
}

/** Requests that arrived whole before the fault are answered first. */
function answerWhenDue(socket: Socket, error: Error, requestId: string, rejections: RejectionLog): void {
  const current = currentResponse(socket);
  if (!current) {
    const refusal = refusalFor(error);
    rejections.addConnection(refusal, socket, requestId);
    writeAnswer(socket, refusal, requestId, isHead(error));
    closeLingering(socket);
  } else if (!current.req.complete) {
    // The error is inside the body of this request. A call that is running learns from it that its client's framing
    // broke, and nothing we say could be told from its response; one that is not yet forwarded is rejected.
    current.shouldKeepAlive = false;
    closeAfterResponse(socket);
    if (!rejectBody(current.req as Request, error)) socket.destroy(error);
  } else {
    current.once('close', () => {
      if (!socket.destroyed) answerWhenDue(socket, error, requestId, rejections);
    });
  }
}

/** What Node says of an error in its parser; the packet is missing where the client left or a timeout ended the wait. */
interface ParserError extends Error {
  rawPacket?: Buffer;
  /** How much of the packet was parsed. */
  bytesParsed?: number;
}

/**
 * True if the rejected head is one of a HEAD request. Node shows only the last packet: if the head began in an earlier
 * one, as a head that is too large does, its method is unknown.
 */
function isHead({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  if (rawPacket === undefined) return false;
  // Heads of earlier requests may stand before it in the same packet.
  const parsed = rawPacket.toString('latin1', 0, bytesParsed);
  const end = parsed.lastIndexOf('\r\n\r\n', bytesParsed - 5);
  return parsed.startsWith('HEAD ', end === -1 ? 0 : end + 4);
}

/** @param bodyless the response to HEAD has the headers of any other and no body (RFC 9110 9.3.2) */
function writeAnswer(socket: Socket, refusal: GatewayError, requestId: string, bodyless: boolean): void {
  const { status, reason, headers, body } = gatewayErrorResponse(refusal, requestId);
  let head = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  head += `Date: ${new Date().toUTCString()}\r\nconnection: close\r\n\r\n`;
  socket.write(bodyless ? head : head + body.toString());
}

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import { GatewayError } from '../../errors/gateway-error.js';
import { gatewayErrorResponse } from './error-response.js';
import { closeAfterResponse, closeLingering, discardInput, isClosing } from './lingering-close.js';
import type { RejectionLog } from './rejection-log.js';

/** The gateway error for an error of Node's parser or timers. */
function gatewayErrorFor(error: Error): GatewayError {
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
 * Responds to a request that Node could not parse, on the socket itself, and closes the connection, because its framing is
 * lost. Node calls this again for everything that arrives after the error; only the first call has an effect.
 */
export function respondToParserError(
  socket: Socket,
  error: Error,
  requestId: string,
  rejections: RejectionLog,
): void {
  const { code } = error as { code?: string };
  if (isClosing(socket)) {
    // What still arrives is not read. A client that disconnects ends the calls before the rejected request.
    if (code === 'HPE_INVALID_EOF_STATE' || code === 'ECONNRESET') socket.destroy(error);
    return;
  }
  // The client has disconnected in the middle of a request; the calls before it on this connection end too.
  const disconnected = code === 'ECONNRESET' || (code === 'HPE_INVALID_EOF_STATE' && currentResponse(socket));
  if (!socket.writable || disconnected) {
    socket.destroy(error);
    return;
  }
  // Decided now: later the socket has read more, and earlier requests are gone.
  const bodyless = isHead(socket, error);
  discardInput(socket);
  respondWhenDue(socket, error, requestId, rejections, bodyless);
}

function currentResponse(socket: Socket): ServerResponse | null | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage;
}

/** Requests that arrived whole before the error get their responses first. */
function respondWhenDue(
  socket: Socket,
  error: Error,
  requestId: string,
  rejections: RejectionLog,
  bodyless: boolean,
): void {
  const current = currentResponse(socket);
  if (!current) {
    const rejection = gatewayErrorFor(error);
    rejections.addConnection(rejection, socket, requestId);
    writeResponse(socket, rejection, requestId, bodyless);
    closeLingering(socket);
  } else if (!current.req.complete) {
    // The error is inside the body of this request. A call that is running learns from it that its client's framing
    // broke, and nothing we say could be told from its response; one that is not yet forwarded is rejected.
    current.shouldKeepAlive = false;
    closeAfterResponse(socket);
    const { call } = current.req as Partial<Request>;
    if (call?.rejectBody(error) !== true) socket.destroy(error);
  } else {
    // The next request is handled in the tick after this event.
    const next = () => {
      if (!socket.destroyed) respondWhenDue(socket, error, requestId, rejections, bodyless);
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
function writeResponse(socket: Socket, rejection: GatewayError, requestId: string, bodyless: boolean): void {
  const { status, reason, headers, body } = gatewayErrorResponse(rejection, requestId);
  let head = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  head += `Date: ${new Date().toUTCString()}\r\nconnection: close\r\n\r\n`;
  socket.write(bodyless ? head : head + body.toString());
}

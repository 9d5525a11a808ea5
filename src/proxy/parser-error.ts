import type { Socket } from 'node:net';
import { Refusal } from '../refusal.js';
import { gatewayErrorAnswer } from './gateway-errors.js';

/** Node's error codes for what its parser or its timers refuse, in our terms. */
function refusalFor(error: Error): Refusal {
  if (error instanceof Refusal) return error;
  const { code } = error as { code?: string };
  if (code === 'HPE_HEADER_OVERFLOW') return new Refusal('headers_too_large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Refusal('request_timeout');
  return new Refusal('invalid_request', { cause: error });
}

/**
 * Answers what never became a request, straight on the socket, and closes it: its framing is lost. While an answer to
 * an earlier request is on its way nothing can be said without becoming part of it, so the socket is destroyed.
 */
export function answerParserError(socket: Socket, error: Error, requestId: string): void {
  const busy = (socket as Socket & { _httpMessage?: object | null })._httpMessage;
  if (busy || !socket.writable || (error as { code?: string }).code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const { status, reason, headers, body } = gatewayErrorAnswer(refusalFor(error), requestId);
  let head = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== 'connection') head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  }
  socket.end(`${head}connection: close\r\n\r\n${body.toString()}`);
}

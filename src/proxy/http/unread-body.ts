import type { IncomingMessage } from 'node:http';
import { patience } from '../../platform/patience.js';

/** How long an unread body is discarded, and how much of it, so that the client can read its response. */
export const LINGER = patience('the end of an unread body', 5_000);
export const LINGER_BYTES = 32 * 1024 * 1024;

/**
 * Discards the rest of a request body after the response, for a limited time, so that the connection can serve the next
 * request. After that time it closes the socket. Closing at once would reset the connection, and the client could lose the
 * response (RFC 9112 9.6). The parser keeps following the framing, so no byte of the rest is taken for a next request. The
 * limit is on time only: Node discards an unread body without reporting its bytes.
 *
 * @param ms milliseconds
 */
export function lingerOverUnreadBody(req: IncomingMessage, ms = LINGER.ms): void {
  const { socket } = req;
  if (socket.destroyed) return;
  // A response with `Connection: close` has just ended the socket. Node destroys it as soon as the response is written
  // (Socket.destroySoon), which would reset the connection while the client still sends.
  socket.off('finish', (socket as { destroy: (this: void) => void }).destroy);
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  req.once('close', () => {
    clearTimeout(timer);
    if (socket.writableEnded) socket.destroy();
  });
  req.resume();
}

import type { IncomingMessage } from 'node:http';

/** How much of what is left to come is taken, and for how long, so that the client gets to read its answer. */
export const LINGER = { bytes: 32 * 1024 * 1024, ms: 5_000 };

/**
 * After an answer to a request whose body was not read to its end: the rest is taken for a while and thrown away, so
 * that the connection can serve the next request; then the socket is closed. Closing at once would reset the connection
 * and could take the answer with it (RFC 9112 9.6). The parser stays in step with the framing all along, so no byte of
 * the rest is ever taken for a next request. Bounded by time alone: Node discards a body nobody has begun to read
 * without telling of it, and a client may as well send one request after the other.
 *
 * @param ms milliseconds
 */
export function lingerOverUnreadBody(req: IncomingMessage, ms = LINGER.ms): void {
  const { socket } = req;
  if (socket.destroyed) return;
  // An answer with `Connection: close` has just ended the socket, and Node is about to destroy it as soon as the answer
  // is out (Socket.destroySoon), which is what resets the connection while the client still sends.
  socket.off('finish', (socket as { destroy: (this: void) => void }).destroy);
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  req.once('close', () => {
    clearTimeout(timer);
    if (socket.writableEnded) socket.destroy();
  });
  req.resume();
}

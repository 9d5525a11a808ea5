import type { IncomingMessage } from 'node:http';

/** How much of an unread body is taken, and for how long, so that the client gets to read its answer. */
const LINGER_BYTES = 4 * 1024 * 1024;
const LINGER_MS = 5_000;

/**
 * After an answer to a request whose body was not read to its end: takes the rest within a bound and throws it away, so
 * that the connection can serve the next request; past the bound the socket is closed. Closing at once would reset the
 * connection and could take the answer with it (RFC 9112 9.6). The parser stays in step with the framing all along, so
 * no byte of the rest is ever taken for a next request.
 */
export function lingerOverUnreadBody(req: IncomingMessage): void {
  const { socket } = req;
  if (socket.destroyed) return;
  let taken = 0;
  const giveUp = () => socket.destroy();
  const timer = setTimeout(giveUp, LINGER_MS);
  req.on('data', (chunk: Buffer) => {
    taken += chunk.length;
    if (taken > LINGER_BYTES) giveUp();
  });
  req.once('close', () => clearTimeout(timer));
  req.resume();
}

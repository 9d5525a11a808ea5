import type { Socket } from 'node:net';
import { LINGER } from './unread-body.js';

/** Connections that serve no further request. */
const closing = new WeakSet<Socket>();

/** True if nothing more on this connection is parsed as a request: its framing is lost or its close was announced. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** Makes this request the last one of its connection, and makes Node close the connection with a lingering close. */
export function closeAfterResponse(socket: Socket): void {
  closing.add(socket);
  // Node calls this once the response is written (RFC 9112 9.6).
  socket.destroySoon = () => {
    discardInput(socket);
    closeLingering(socket);
  };
}

/** Discards everything that arrives from now on, unparsed, up to LINGER.bytes. */
export function discardInput(socket: Socket): void {
  closing.add(socket);
  let bytesLeft = LINGER.bytes;
  // Node's HTTP server detaches its parser from the socket's handle when the socket gets a 'data' listener.
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft < 0) socket.destroy();
  });
  socket.resume();
}

/**
 * Closes a connection so that the client can still read the last response: the writing side at once, the rest when the
 * client has closed too or after LINGER.ms. Closing both while the client still sends would reset the connection, and a
 * reset discards what the client has not read yet (RFC 9112 9.6).
 */
export function closeLingering(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER.ms).unref();
  socket.once('end', () => socket.destroy());
  socket.once('close', () => clearTimeout(timer));
}

import type { Socket } from 'node:net';
import { LINGER, LINGER_BYTES } from './unread-body.js';

/** Connections that serve no further request. */
const closing = new WeakSet<Socket>();

/** Those that brought something behind their last request, which is lost. */
const continued = new WeakSet<Socket>();

/** True if nothing more on this connection is parsed as a request: its framing is lost or its close was announced. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** The end of a head whose last bytes came in a packet of their own. */
const END_OF_HEAD = /^\r?\n(?:\r\n)?$/;

/**
 * Notes whether something follows the head of a request with `Upgrade` in the same packet, which Node's parser drops. To be
 * called while the parser is at this head; at any other time, nothing is noted.
 */
export function noteContinued(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { getCurrentBuffer?(): Buffer } };
  const packet = parser?.getCurrentBuffer?.();
  if (packet === undefined || packet.length === 0) return;
  const end = packet.indexOf('\r\n\r\n');
  const isEnd = end === -1 ? END_OF_HEAD.test(packet.toString('latin1')) : end + 4 === packet.length;
  if (!isEnd) continued.add(socket);
}

/** True if something was noted to follow the last request of a connection. */
export function isContinued(socket: Socket): boolean {
  return continued.has(socket);
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

/** Discards everything that arrives from now on, unparsed, up to LINGER_BYTES. */
export function discardInput(socket: Socket): void {
  closing.add(socket);
  let bytesLeft = LINGER_BYTES;
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

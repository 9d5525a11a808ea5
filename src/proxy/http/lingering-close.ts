import type { Socket } from 'node:net';
import { LINGER } from './unread-body.js';

/** Connections that have had their last request. */
const closing = new WeakSet<Socket>();

/** True when whatever else arrives on this connection is no request: its framing is lost or its end was announced. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** For a response that announces the end of its connection: nothing after its request is one, and Node closes lingering. */
export function closeAfterResponse(socket: Socket): void {
  closing.add(socket);
  // What Node calls once the response is out (RFC 9112 9.6).
  socket.destroySoon = () => {
    discardInput(socket);
    closeLingering(socket);
  };
}

/** From now on nothing that arrives is parsed; it is thrown away, within a bound. */
export function discardInput(socket: Socket): void {
  closing.add(socket);
  let room = LINGER.bytes;
  // Node's HTTP server takes its parser off the socket's handle when the socket gets a listener for its data.
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    room -= chunk.length;
    if (room < 0) socket.destroy();
  });
  socket.resume();
}

/**
 * Closes a connection in the way that lets its client read the last answer: our side first, the rest when the client
 * has closed too or a bound is passed. Closing at once while the client still sends would reset the connection, and a
 * reset discards what the client has not read yet (RFC 9112 9.6).
 */
export function closeLingering(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER.ms).unref();
  socket.once('end', () => socket.destroy());
  socket.once('close', () => clearTimeout(timer));
}

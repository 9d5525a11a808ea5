import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isClosing } from './lingering-close.js';

/**
 * Requests that may wait on one connection before it is read no further. Below this, the connection is read, so that a
 * disconnect of the client is noticed. Node parses a whole read (64 KiB) at once, which may take the number above this.
 */
const READ_AHEAD = 32;

/** Number of requests that wait for an earlier response, by connection. */
const waiting = new WeakMap<Socket, number>();

/** Timers of heads that were late while requests waited, by connection. */
const lateHeads = new WeakMap<Socket, NodeJS.Timeout>();

/** True while parsed requests wait on this connection for an earlier response. */
export function hasWaitingRequests(socket: Socket): boolean {
  return (waiting.get(socket) ?? 0) > 0;
}

/**
 * Gives a head its time again, counted from when no request waits any more: it may be late because reading had paused,
 * and Node reports a late head only once.
 *
 * @param ms milliseconds
 */
export function restartHeadTime(socket: Socket, ms: number, onLate: () => void): void {
  const timer = setTimeout(() => {
    if (!socket.destroyed) onLate();
  }, ms);
  lateHeads.set(socket, timer.unref());
}

/** To be called for each request: its head is complete. */
export function endHeadTime(socket: Socket): void {
  clearTimeout(lateHeads.get(socket));
  lateHeads.delete(socket);
}

/**
 * Handles a pipelined request once all earlier responses on its connection are written. RFC 9112 9.3.2 allows handling in
 * parallel only for safe methods, and one connection would be any number of upstream calls. If the connection ends with
 * an earlier response, or is lost, the request is never handled.
 */
export function afterEarlierResponses(
  req: IncomingMessage,
  res: ServerResponse,
  handle: (req: IncomingMessage, res: ServerResponse) => void,
): void {
  const { socket } = req;
  const count = (waiting.get(socket) ?? 0) + 1;
  if (!waiting.has(socket)) socket.on('resume', pauseWhileFull);
  waiting.set(socket, count);
  if (count >= READ_AHEAD) socket.pause();
  // Node gives a response its socket when it is the next to be written.
  res.once('socket', () => {
    const left = waiting.get(socket)! - 1;
    waiting.set(socket, left);
    if (left === READ_AHEAD - 1) socket.resume();
    if (left === 0) lateHeads.get(socket)?.refresh();
    // Node has not finished handing over the socket yet.
    process.nextTick(() => {
      if (!socket.destroyed) handle(req, res);
    });
  });
}

/** Node resumes a connection for reasons of its own, such as reading the body of the current request. */
function pauseWhileFull(this: Socket): void {
  if (waiting.get(this)! >= READ_AHEAD && !isClosing(this)) this.pause();
}

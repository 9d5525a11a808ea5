import type { Request, Response } from 'express';

/**
 * Tells a client that waits for the word to send its body (RFC 9110 10.1.1), once key and size are known to be good. An
 * HTTP/1.0 client does not know the word (RFC 9110 15.2).
 */
export async function letBodyCome(req: Request, res: Response): Promise<void> {
  if (req.httpVersionMinor === 0) return;
  // A client that left during the look-up of its key leaves a response that nothing more is told.
  if (res.socket === null && !req.socket.destroyed) await turnOf(res);
  res.writeContinue();
}

/**
 * Settles when a pipelined response's turn on its connection comes, or its client has left. Before that Node would put
 * the word to continue between the head and the body of this very response.
 */
function turnOf(res: Response): Promise<void> {
  return new Promise((resolve) => res.once('socket', () => resolve()).once('close', () => resolve()));
}

import type { Request, Response } from 'express';

/** Aborts once the connection of a request is closed, and no more response can be sent. */
export function disconnection({ socket }: Request, res: Response): AbortSignal {
  const gone = new AbortController();
  if (socket.destroyed) gone.abort();
  else res.once('close', () => socket.destroyed && gone.abort());
  return gone.signal;
}

import type { Request, Response } from 'express';

/**
 * Tells a client that waits for the word to send its body (RFC 9110 10.1.1), once key and size are known to be good. An
 * HTTP/1.0 client does not know the word (RFC 9110 15.2).
 */
export function sendContinue(req: Request, res: Response): void {
  if (req.httpVersionMinor !== 0) res.writeContinue();
}

import type { Request, Response } from 'express';

/**
 * Sends `100 Continue` to a client that waits for it before it sends its body (RFC 9110 10.1.1). Called once key and size
 * have been accepted. HTTP/1.0 has no interim responses (RFC 9110 15.2).
 */
export function sendContinue(req: Request, res: Response): void {
  if (req.httpVersionMinor !== 0) res.writeContinue();
}

import type { Request, Response } from 'express';
import type { GatewayErrorCode } from '../errors/gateway-error.js';
import type { Outcome } from '../request-log/outcome.js';

/** Node's parser rejected what the client sent. INVALID_EOF_STATE is left out: the client disconnected in a message. */
const BROKEN_FRAMING = /^HPE_(?!INVALID_EOF_STATE)/;

/** Outcome and error code of a call whose response was written to the end, or whose client's socket is closed. */
export function outcomeOfClose(req: Request, res: Response): [Outcome, GatewayErrorCode?] {
  if (res.writableFinished) return ['completed'];
  const { code = '' } = (req.socket.errored ?? {}) as { code?: string };
  return BROKEN_FRAMING.test(code) ? ['client_error', 'invalid_request'] : ['client_aborted'];
}

import type { ServerResponse } from 'node:http';
import type { GatewayError } from '../../errors/gateway-error.js';
import { gatewayErrorResponse } from './error-response.js';
import { closeAfterResponse } from './lingering-close.js';

/**
 * Sends the gateway's own answer to a request; once a head is out nothing may be appended to it, so the connection is
 * destroyed and the client sees the break.
 */
export function sendGatewayError(
  res: ServerResponse,
  refusal: GatewayError,
  requestId: string,
  target?: string,
): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const answer = gatewayErrorResponse(refusal, requestId, target);
  const { req } = res;
  const expects = req.headers.expect !== undefined;
  if (answer.closes || (expects && !req.complete)) {
    // A client that was never told to continue may keep its body (RFC 9110 10.1.1): nobody would know what follows.
    answer.headers.push('connection', 'close');
    closeAfterResponse(req.socket);
  } else if (expects) {
    // This one sent it all unasked. Node would end the connection, and with it calls that came behind this one.
    (res as { _expect_continue?: boolean })._expect_continue = false;
  }
  res.writeHead(answer.status, answer.reason, answer.headers);
  res.end(answer.body);
}

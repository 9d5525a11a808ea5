import type { ServerResponse } from 'node:http';
import type { GatewayError } from '../../errors/gateway-error.js';
import { gatewayErrorResponse } from './error-response.js';
import { closeAfterResponse } from './lingering-close.js';

/**
 * Sends an error response of the gateway. If a response has already started, it destroys the connection instead, so that the
 * client sees that the response is incomplete.
 */
export function sendGatewayError(
  res: ServerResponse,
  error: GatewayError,
  requestId: string,
  target?: string,
): void {
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const response = gatewayErrorResponse(error, requestId, target);
  const { req } = res;
  const expects = req.headers.expect !== undefined;
  if (response.closes || (expects && !req.complete)) {
    // A client that got no 100 Continue may omit its body (RFC 9110 10.1.1): the next bytes would be ambiguous.
    response.headers.push('connection', 'close');
    closeAfterResponse(req.socket);
  } else if (expects) {
    // The client sent the whole body without waiting. Node would close the connection, and with it pipelined requests.
    (res as { _expect_continue?: boolean })._expect_continue = false;
  }
  res.writeHead(response.status, response.reason, response.headers);
  res.end(response.body);
}

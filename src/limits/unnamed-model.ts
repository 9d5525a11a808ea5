import { GatewayError } from '../errors/gateway-error.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';

/**
 * A client that gets 426 sends plain HTTP, where every request names its model.
 *
 * @throws GatewayError upgrade_required for a WebSocket
 */
export function rejectUnnamedModel(call: PolicyCall): void {
  if (!call.isWebSocket) return;
  throw new GatewayError('upgrade_required', {
    message:
      'The models of this gateway key are limited, and on this WebSocket they cannot be checked. Send plain HTTP requests.',
  });
}

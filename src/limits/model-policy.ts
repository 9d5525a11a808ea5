import type { Grant } from '../auth/caller.js';
import { GatewayError } from '../errors/gateway-error.js';
import { CallPolicy } from '../proxy/policies/call-policy.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';
import { cutModels } from './model-list.js';
import { matchesPattern } from './model-pattern.js';

/** Lets a key use only the models on its list and on the list of its team. */
@CallPolicy()
export class ModelPolicy implements CallPolicy {
  readonly order = -100;

  appliesTo(grant: Grant): boolean {
    return grant.models.length > 0;
  }

  needsBody(call: PolicyCall): boolean {
    return call.modelSource === 'body';
  }

  /** @throws GatewayError model_not_allowed, model_not_determined */
  admit(call: PolicyCall): void {
    const { grant, modelSource } = call;
    if (modelSource === 'list' && !call.isOverridden) {
      call.filterResponse((body) => cutModels(body, (model) => isAllowed(grant, model)), 'models');
      return;
    }
    if (modelSource === 'none') {
      rejectUnnamedModel(call);
      throw new GatewayError('model_not_allowed', {
        message: 'This gateway key may only use certain models, and requests to this endpoint name none.',
      });
    }
    if (!isAllowed(grant, call.requireModel())) throw new GatewayError('model_not_allowed');
  }
}

function isAllowed({ models }: Grant, model: string): boolean {
  return models.every((patterns) => patterns.some((pattern) => matchesPattern(pattern, model)));
}

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

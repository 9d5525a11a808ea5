import { defineGatewayError } from '../../errors/gateway-error.js';

export const POLICY_REJECTED = defineGatewayError('policy_rejected', {
  status: 403,
  message: 'A policy of this gateway does not allow this request.',
  retryable: false,
});

export const POLICY_UNAVAILABLE = defineGatewayError('policy_unavailable', {
  status: 503,
  message: 'A policy of this gateway that decides about this request does not respond. Try again.',
  retryAfter: 1,
});

export const POLICY_CALL_TOO_LONG = defineGatewayError('policy_call_too_long', {
  status: 400,
  message:
    'The path, model, end user and tags of this request are too long for the policies of this gateway. Shorten them.',
  retryable: false,
});

import { STATUS_CODES } from 'node:http';
import { GatewayError, type GatewayErrorCode } from '../../errors/gateway-error.js';
import { ALLOWED_METHODS } from './request-validation.js';

interface GatewayErrorForm {
  status: number;
  message: string;
  /** Seconds for `retry-after`. */
  retryAfter?: number;
  /** `x-should-retry: false`, which the OpenAI and Anthropic SDKs obey. */
  final?: true;
  /** The connection is of no use afterwards: its framing cannot be trusted. */
  close?: true;
}

/** The one place where a fault gets its status and its sentence. */
const FORMS: Record<GatewayErrorCode, GatewayErrorForm> = {
  invalid_path: {
    status: 400,
    final: true,
    message: 'The request target is not a safe path. Send a plain path such as /v1/chat/completions.',
  },
  invalid_request: {
    status: 400,
    final: true,
    close: true,
    message: 'The request is not well-formed HTTP/1.1.',
  },
  credential_in_query: {
    status: 400,
    final: true,
    message:
      'A credential was sent in the URL. Send it in the Authorization header, and replace the key: URLs end up in logs.',
  },
  invalid_idempotency_key: {
    status: 400,
    final: true,
    message: 'Idempotency-Key must be 1 to 255 visible ASCII characters.',
  },
  invalid_api_key: {
    status: 401,
    final: true,
    message:
      'The gateway key is missing, malformed, unknown, expired or revoked. Send "Authorization: Bearer <gateway key>".',
  },
  endpoint_not_allowed: {
    status: 403,
    final: true,
    message: 'This gateway key may only use inference endpoints. Ask for a key with "endpoints": "all".',
  },
  provider_not_allowed: { status: 403, final: true, message: 'This gateway key may not use this provider.' },
  not_found: {
    status: 404,
    final: true,
    message: 'Nothing lives here. Calls go to /v1/... or /p/<provider>/...',
  },
  provider_not_found: { status: 404, final: true, message: 'No provider of this name is configured.' },
  method_not_allowed: { status: 405, final: true, message: 'This method is not forwarded.' },
  request_timeout: { status: 408, close: true, message: 'The request did not arrive in time.' },
  expectation_failed: {
    status: 417,
    final: true,
    close: true,
    message: 'Only "Expect: 100-continue" is understood.',
  },
  headers_too_large: { status: 431, final: true, close: true, message: 'The request headers are too large.' },
  idempotency_in_progress: {
    status: 409,
    retryAfter: 1,
    message: 'A call with this Idempotency-Key is still running.',
  },
  idempotency_outcome_unknown: {
    status: 409,
    final: true,
    message:
      'A call with this Idempotency-Key was cut off and its outcome is unknown. Check, then use a new key.',
  },
  idempotency_mismatch: {
    status: 422,
    final: true,
    message: 'This Idempotency-Key was used with another body.',
  },
  request_too_large: {
    status: 413,
    final: true,
    message: 'The request body is larger than this gateway allows.',
  },
  internal_error: { status: 500, message: 'The gateway failed; the request id finds the reason in its log.' },
  upstream_unreachable: { status: 502, message: 'The provider could not be reached.' },
  upstream_invalid_response: {
    status: 502,
    message: 'The provider broke off before an answer or sent one that is not valid HTTP.',
  },
  upstream_timeout: { status: 504, message: 'The provider did not answer in time.' },
  no_provider_configured: {
    status: 503,
    retryAfter: 1,
    message: 'No provider is configured. Set PROVIDER_URL and PROVIDER_KEY, then start again.',
  },
  database_unavailable: { status: 503, retryAfter: 1, message: 'The key cannot be checked right now.' },
  journal_unavailable: {
    status: 503,
    retryAfter: 5,
    message: 'The request log cannot be written right now.',
  },
  overloaded: { status: 503, retryAfter: 1, message: 'Too many look-ups of unknown keys right now.' },
  shutting_down: { status: 503, retryAfter: 1, message: 'This gateway is shutting down.' },
};

/** Errors that a module defined bring their form along. */
function formOf({ code, definition }: GatewayError): GatewayErrorForm {
  if (definition === null) return FORMS[code as GatewayErrorCode];
  const { status, message, retryAfter, retryable } = definition;
  return { status, message, retryAfter, ...(retryable === false && { final: true }) };
}

/** The HTTP status that an error is sent with. */
export const statusOf = (error: GatewayError): number => formOf(error).status;

/** One answer of the gateway's own: status, flat raw headers without `connection`, body. */
export interface GatewayErrorResponse {
  status: number;
  reason: string;
  headers: string[];
  body: Buffer;
  /** The connection must end with this answer. */
  closes: boolean;
}

/**
 * Builds the answer for a code in the shape of the endpoint's own API: Anthropic's on `/v1/messages*` (also after
 * `/p/<provider>`), OpenAI's everywhere else, so that each SDK raises its own error class.
 *
 * @param target raw request target, or undefined where none could be read
 */
export function gatewayErrorResponse(
  refusal: GatewayError,
  requestId: string,
  target?: string,
): GatewayErrorResponse {
  const form = formOf(refusal);
  const message = refusal.options.message ?? form.message;
  const body = Buffer.from(
    JSON.stringify(
      isAnthropic(target)
        ? { type: 'error', error: { type: anthropicType(form.status), message } }
        : { error: { message, type: openaiType(form.status), param: null, code: refusal.code } },
    ),
  );
  const headers = [
    'content-type',
    'application/json',
    'content-length',
    String(body.length),
    'x-gateway-error',
    refusal.code,
    'x-gateway-request-id',
    requestId,
  ];
  if (form.status === 405) headers.push('allow', ALLOWED_METHODS);
  if (form.status === 401) headers.push('www-authenticate', 'Bearer');
  if (form.retryAfter !== undefined) headers.push('retry-after', String(form.retryAfter));
  if (form.final) headers.push('x-should-retry', 'false');
  return {
    status: form.status,
    reason: STATUS_CODES[form.status] ?? 'Error',
    headers,
    body,
    closes: form.close === true,
  };
}

function isAnthropic(target: string | undefined): boolean {
  return target !== undefined && /^(?:\/p\/[^/?]+)?\/v1\/messages(?:[/?]|$)/.test(target);
}

/** Error types as the OpenAI API names them. */
function openaiType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  if (status >= 500) return 'api_error';
  return 'invalid_request_error';
}

/** Error types as the Anthropic API documents them. */
function anthropicType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 402) return 'billing_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 413) return 'request_too_large';
  if (status === 429) return 'rate_limit_error';
  if (status === 503) return 'overloaded_error';
  if (status === 504) return 'timeout_error';
  if (status >= 500) return 'api_error';
  return 'invalid_request_error';
}

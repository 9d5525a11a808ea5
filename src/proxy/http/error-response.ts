import { STATUS_CODES } from 'node:http';
import { GatewayError, type GatewayErrorCode } from '../../errors/gateway-error.js';
import { isAnthropic } from '../../providers/inference-endpoints.js';
import { ALLOWED_METHODS } from './request-validation.js';

interface GatewayErrorForm {
  status: number;
  message: string;
  /** Seconds for `retry-after`. */
  retryAfter?: number;
  /** `x-should-retry: false`, which the OpenAI and Anthropic SDKs obey. */
  final?: true;
  /** Close the connection: its framing cannot be trusted. */
  close?: true;
}

/** The response to each error code of the gateway. */
const FORMS: Record<GatewayErrorCode, Omit<GatewayErrorForm, 'status'>> = {
  invalid_path: {
    final: true,
    message: 'The request path is not allowed. Send a plain path such as /v1/chat/completions.',
  },
  invalid_request: {
    final: true,
    close: true,
    message: 'The request is not well-formed HTTP/1.1.',
  },
  credential_in_query: {
    final: true,
    message:
      'A credential was sent in the URL. Send it in the Authorization header, and replace the key: URLs end up in logs.',
  },
  invalid_idempotency_key: {
    final: true,
    message: 'Idempotency-Key must be 1 to 255 visible ASCII characters.',
  },
  invalid_api_key: {
    final: true,
    message:
      'The gateway key is missing, malformed, unknown, disabled, expired or revoked. Send "Authorization: Bearer <gateway key>".',
  },
  insufficient_quota: {
    final: true,
    message: 'A budget of this gateway key is spent.',
  },
  endpoint_not_allowed: {
    final: true,
    message:
      'This gateway key may only use inference endpoints here. Ask for a key with "endpoints": "own" and a provider of its team, or with "all".',
  },
  provider_not_allowed: { final: true, message: 'This gateway key may not use this provider.' },
  model_not_allowed: {
    final: true,
    message: 'This gateway key may not use this model. GET /v1/models lists the models that it may use.',
  },
  model_not_determined: {
    final: true,
    message: 'The model of this request cannot be determined.',
  },
  model_not_priced: {
    final: true,
    message:
      'This gateway key has a budget in USD, and the price of this model is unknown. Ask for a price, or for a budget with "unpriced": "allow".',
  },
  usage_required: {
    final: true,
    message:
      'Streams of this gateway key must report their usage. Add "stream_options": {"include_usage": true}.',
  },
  not_found: {
    final: true,
    message: 'Not found. Send API calls to /v1/… or /p/<provider>/…; check that your base URL ends in /v1.',
  },
  provider_not_found: { final: true, message: 'No provider of this name is configured.' },
  method_not_allowed: { final: true, message: 'This method is not forwarded.' },
  request_timeout: { close: true, message: 'The request did not arrive in time.' },
  expectation_failed: {
    final: true,
    close: true,
    message: 'Only "Expect: 100-continue" is supported.',
  },
  upgrade_required: {
    final: true,
    message: 'This gateway key may not open WebSockets. Send plain HTTP requests.',
  },
  headers_too_large: { final: true, close: true, message: 'The request headers are too large.' },
  idempotency_in_progress: {
    retryAfter: 1,
    message: 'A call with this Idempotency-Key is still running.',
  },
  idempotency_outcome_unknown: {
    final: true,
    message:
      'A call with this Idempotency-Key was interrupted and its outcome is unknown. Check the result, then use a new key.',
  },
  idempotency_mismatch: {
    final: true,
    message: 'This Idempotency-Key was already used with a different body.',
  },
  request_too_large: {
    final: true,
    message: 'The request body is larger than this gateway allows.',
  },
  rate_limit_exceeded: {
    message: 'This gateway key has reached a limit. Try again later.',
  },
  internal_error: {
    message: 'Internal gateway error. Search the gateway log for this request ID.',
  },
  upstream_unreachable: { message: 'The provider could not be reached.' },
  upstream_invalid_response: {
    message: 'The provider closed the connection before responding, or sent an invalid HTTP response.',
  },
  provider_credential_unavailable: {
    message:
      "The gateway could not obtain its access token for this provider. Try again; the gateway's log has the reason.",
  },
  not_cached: {
    final: true,
    message: 'The response is not in the cache, and the request says only-if-cached.',
  },
  upstream_timeout: { message: 'The provider did not respond in time.' },
  no_provider_configured: {
    retryAfter: 1,
    // Only an operator can change it.
    final: true,
    message:
      'No provider is configured. Set PROVIDER_URL and PROVIDER_KEY, then restart the gateway, or add a provider with --default.',
  },
  database_unavailable: {
    retryAfter: 1,
    message: 'The gateway key cannot be checked because the database is unavailable. Try again.',
  },
  limits_unavailable: {
    retryAfter: 5,
    message:
      'The limits of this gateway key cannot be checked because the database is unavailable. Try again.',
  },
  journal_unavailable: {
    retryAfter: 5,
    message: 'The request log cannot be written right now. Try again later.',
  },
  overloaded: { retryAfter: 1, message: 'The gateway is overloaded. Try again.' },
  shutting_down: { retryAfter: 1, message: 'This gateway is shutting down.' },
};

/** An error that a module defined has its own status and message. */
function formOf(error: GatewayError): GatewayErrorForm {
  const { code, definition } = error;
  const status = error.getStatus();
  if (definition === null) return { status, ...FORMS[code as GatewayErrorCode] };
  const { message, retryAfter, retryable } = definition;
  return { status, message, retryAfter, ...(retryable === false && { final: true }) };
}

/** The HTTP status that an error is sent with. */
export const statusOf = (error: GatewayError): number => error.getStatus();

/** An error response: status, flat raw headers without `connection`, body. */
export interface GatewayErrorResponse {
  status: number;
  reason: string;
  headers: string[];
  body: Buffer;
  /** The connection must be closed after this response. */
  closes: boolean;
}

/**
 * Builds the response for an error in the shape of the endpoint's API: Anthropic's on `/v1/messages*`, OpenAI's everywhere
 * else, with what the AWS SDKs read beside it on `/model/*` (also after `/p/<provider>`), so that each SDK raises its own
 * error class with the message.
 *
 * @param target raw request target, or undefined if none could be read
 */
export function gatewayErrorResponse(
  error: GatewayError,
  requestId: string,
  target?: string,
): GatewayErrorResponse {
  const form = formOf(error);
  const { type, headers: further, message = form.message, code = error.code } = error.given;
  const isOfBedrock = isBedrock(target);
  const body = Buffer.from(
    JSON.stringify(
      isAnthropic(target)
        ? { type: 'error', error: { type: type?.anthropic ?? anthropicType(form.status), message } }
        : {
            ...(isOfBedrock && { message }),
            error: { message, type: type?.openai ?? openaiType(form.status), param: null, code },
          },
    ),
  );
  const headers = [
    'content-type',
    'application/json',
    'content-length',
    String(body.length),
    'x-content-type-options',
    'nosniff',
    'x-gateway-error',
    error.code,
    'x-gateway-request-id',
    requestId,
    // From these the SDKs of OpenAI and Anthropic read the ID that their errors show.
    'x-request-id',
    requestId,
    'request-id',
    requestId,
  ];
  if (isOfBedrock) headers.push('x-amzn-errortype', bedrockType(form.status), 'x-amzn-requestid', requestId);
  if (form.status === 405) headers.push('allow', ALLOWED_METHODS);
  // RFC 9110 15.5.22: the protocol to use instead.
  if (form.status === 426) headers.push('upgrade', 'HTTP/1.1', 'connection', 'close, upgrade');
  if (form.status === 401) headers.push('www-authenticate', 'Bearer');
  if (form.retryAfter !== undefined) headers.push('retry-after', String(form.retryAfter));
  if (form.final) headers.push('x-should-retry', 'false');
  if (further !== undefined) headers.push(...further);
  return {
    status: form.status,
    reason: STATUS_CODES[form.status] ?? 'Error',
    headers,
    body,
    closes: form.close === true,
  };
}

/** Whether the AWS SDKs read errors of this request. @param target raw request target */
function isBedrock(target: string | undefined): boolean {
  return target !== undefined && /^(?:\/p\/[^/?]+)?\/model\//.test(target);
}

/** Error types as the OpenAI API names them. */
function openaiType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 402) return 'insufficient_quota';
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

/** Exceptions of the Bedrock Runtime API. The SDKs decide on a retry by them and by the status alike. */
function bedrockType(status: number): string {
  if (status === 401 || status === 403) return 'AccessDeniedException';
  if (status === 402) return 'ServiceQuotaExceededException';
  if (status === 404) return 'ResourceNotFoundException';
  if (status === 429) return 'ThrottlingException';
  if (status === 503) return 'ServiceUnavailableException';
  if (status >= 500) return 'InternalServerException';
  return 'ValidationException';
}

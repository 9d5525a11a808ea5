import { HttpException } from '@nestjs/common';

/** Every code of the gateway's own, with its status; the message of each is in proxy/http/error-response.ts. */
const STATUSES = {
  invalid_path: 400,
  invalid_request: 400,
  credential_in_query: 400,
  invalid_idempotency_key: 400,
  invalid_api_key: 401,
  insufficient_quota: 402,
  endpoint_not_allowed: 403,
  model_not_allowed: 403,
  model_not_determined: 400,
  model_not_priced: 403,
  provider_not_allowed: 403,
  not_found: 404,
  provider_not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  expectation_failed: 417,
  upgrade_required: 426,
  headers_too_large: 431,
  idempotency_in_progress: 409,
  idempotency_outcome_unknown: 409,
  idempotency_mismatch: 422,
  rate_limit_exceeded: 429,
  request_too_large: 413,
  internal_error: 500,
  upstream_unreachable: 502,
  upstream_invalid_response: 502,
  upstream_timeout: 504,
  provider_credential_unavailable: 502,
  not_cached: 504,
  no_provider_configured: 503,
  database_unavailable: 503,
  limits_unavailable: 503,
  journal_unavailable: 503,
  overloaded: 503,
  shutting_down: 503,
  usage_required: 400,
} as const;
/** An error code of the gateway's own. */
export type GatewayErrorCode = keyof typeof STATUSES;
export const GATEWAY_ERROR_CODES = Object.keys(STATUSES) as readonly GatewayErrorCode[];

/** True for a code of the gateway's own. */
export function isGatewayErrorCode(code: string): code is GatewayErrorCode {
  return Object.hasOwn(STATUSES, code);
}

/** An error code of a module's own, with the response that it gets. */
export interface GatewayErrorDefinition {
  /** Sent as `code` and as `x-gateway-error`; lower-case letters, digits and underscores. */
  readonly code: string;
  /** 400 to 599. */
  readonly status: number;
  /** One sentence for the caller. Must not hold keys, host names, SQL or stacks. */
  readonly message: string;
  /** False: the SDKs are told not to retry (`x-should-retry: false`). */
  readonly retryable?: boolean;
  /** Seconds for `retry-after`. */
  readonly retryAfter?: number;
}

/** What one error has besides its code. */
export interface GatewayErrorOptions {
  /** Replaces the code's own sentence; must not hold keys, host names, SQL or stacks. */
  message?: string;
  /** Sent as `code` in the body, in place of the error's own, which `x-gateway-error` keeps. */
  code?: string;
  /** The error behind it, for our log only. */
  cause?: unknown;
  /** Further headers of the response: names and values in turn, as `retry-after`. Must not hold keys or host names. */
  headers?: readonly string[];
  /** The error's `type` in the OpenAI and in the Anthropic shape, if it is not the one that belongs to the status. */
  type?: { readonly openai?: string; readonly anthropic?: string };
  /**
   * The limit or budget that rejected the call.
   *
   * @internal
   */
  limit?: { readonly nr: string };
}

/**
 * A request that the gateway answers itself, in the provider's error shape. Thrown with one of the gateway's own codes,
 * or with a definition of a module's own. A filter for all errors, such as one of Nest's docs, finds its status and message
 * as in any HttpException.
 *
 * @throws TypeError for a definition that cannot be sent
 */
export class GatewayError extends HttpException {
  override readonly name = 'GatewayError';
  readonly code: string;
  /** Null for the gateway's own codes. @internal */
  readonly definition: GatewayErrorDefinition | null;

  constructor(
    what: GatewayErrorCode | GatewayErrorDefinition,
    /** @internal */ readonly given: GatewayErrorOptions = {},
  ) {
    const definition = typeof what === 'string' ? null : what;
    const code = typeof what === 'string' ? what : what.code;
    super(
      given.message ?? definition?.message ?? code,
      definition?.status ?? STATUSES[code as GatewayErrorCode],
      {
        cause: given.cause,
      },
    );
    if (definition !== null) check(definition);
    this.code = code;
    this.definition = definition;
  }
}

const defined = new Map<string, GatewayErrorDefinition>();

/**
 * Defines an error code once, for a module that throws it in several places:
 *
 *     export const REGION_NOT_ALLOWED = defineGatewayError('region_not_allowed', {
 *       status: 403, message: 'This key may not use this region.', retryable: false });
 *     throw new GatewayError(REGION_NOT_ALLOWED);
 *
 * @throws TypeError for a definition that cannot be sent, or a code that is already defined
 */
export function defineGatewayError(
  code: string,
  form: Omit<GatewayErrorDefinition, 'code'>,
): GatewayErrorDefinition {
  const definition = Object.freeze({ ...form, code });
  check(definition);
  if (defined.has(code)) throw new TypeError(`the error code ${code} is already defined`);
  defined.set(code, definition);
  return definition;
}

function check({ code, status }: GatewayErrorDefinition): void {
  // A code stands in a header and in a metric's label.
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(code))
    throw new TypeError(`${JSON.stringify(code)} is not an error code`);
  if (isGatewayErrorCode(code)) throw new TypeError(`the error code ${code} is the gateway's own`);
  if (!Number.isInteger(status) || status < 400 || status > 599)
    throw new TypeError(`${status} is not the status of an error`);
}

/** Every code of the gateway's own; the status and message of each are in proxy/http/error-response.ts. */
export const GATEWAY_ERROR_CODES = [
  'invalid_path',
  'invalid_request',
  'credential_in_query',
  'invalid_idempotency_key',
  'invalid_api_key',
  'insufficient_quota',
  'endpoint_not_allowed',
  'model_not_allowed',
  'model_not_determined',
  'model_not_priced',
  'provider_not_allowed',
  'not_found',
  'provider_not_found',
  'method_not_allowed',
  'request_timeout',
  'expectation_failed',
  'upgrade_required',
  'headers_too_large',
  'idempotency_in_progress',
  'idempotency_outcome_unknown',
  'idempotency_mismatch',
  'rate_limit_exceeded',
  'request_too_large',
  'internal_error',
  'upstream_unreachable',
  'upstream_invalid_response',
  'upstream_timeout',
  'provider_credential_unavailable',
  'not_cached',
  'no_provider_configured',
  'database_unavailable',
  'limits_unavailable',
  'journal_unavailable',
  'overloaded',
  'shutting_down',
  'usage_required',
] as const;
/** @beta */
export type GatewayErrorCode = (typeof GATEWAY_ERROR_CODES)[number];

/** True for a code of the gateway's own. */
export function isGatewayErrorCode(code: string): code is GatewayErrorCode {
  return (GATEWAY_ERROR_CODES as readonly string[]).includes(code);
}

/**
 * An error code of a module's own, with the response that it gets.
 *
 * @beta
 */
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

/** @beta */
export interface GatewayErrorOptions {
  /** Replaces the code's own sentence; must not hold keys, host names, SQL or stacks. */
  message?: string;
  /** The error behind it, for our log only. */
  cause?: unknown;
  /** Further headers of the response: names and values in turn, as `retry-after`. Must not hold keys or host names. */
  headers?: readonly string[];
  /** The error's `type` in the OpenAI and in the Anthropic shape, if it is not the one that belongs to the status. */
  type?: { readonly openai?: string; readonly anthropic?: string };
}

/**
 * A request that the gateway answers itself, in the provider's error shape. Thrown with one of the gateway's own codes,
 * or with a definition of a module's own.
 *
 * @throws TypeError for a definition that cannot be sent
 *
 * @beta
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: string;
  /** Null for the gateway's own codes. */
  readonly definition: GatewayErrorDefinition | null;

  constructor(
    what: GatewayErrorCode | GatewayErrorDefinition,
    readonly options: GatewayErrorOptions = {},
  ) {
    const definition = typeof what === 'string' ? null : what;
    const code = typeof what === 'string' ? what : what.code;
    super(options.message ?? definition?.message ?? code, { cause: options.cause });
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
 *
 * @beta
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

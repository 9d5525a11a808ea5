/** Every reason for which the gateway itself says no; the wire form of each is in proxy/gateway-errors.ts. */
export const REFUSAL_CODES = [
  'invalid_path',
  'invalid_request',
  'credential_in_query',
  'invalid_idempotency_key',
  'invalid_api_key',
  'endpoint_not_allowed',
  'provider_not_allowed',
  'not_found',
  'provider_not_found',
  'method_not_allowed',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
  'idempotency_in_progress',
  'idempotency_outcome_unknown',
  'idempotency_mismatch',
  'request_too_large',
  'internal_error',
  'upstream_unreachable',
  'upstream_invalid_response',
  'upstream_timeout',
  'no_provider_configured',
  'database_unavailable',
  'journal_unavailable',
  'overloaded',
  'shutting_down',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

export interface RefusalOptions {
  /** Overrides the code's own sentence; must not hold keys, host names, SQL or stacks. */
  message?: string;
  /** The fault behind it, for our log only. */
  cause?: unknown;
}

/** A call the gateway answers itself. Rooms throw it with a code; only proxy/ knows statuses and shapes. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  constructor(
    readonly code: RefusalCode,
    readonly options: RefusalOptions = {},
  ) {
    super(options.message ?? code, { cause: options.cause });
  }
}

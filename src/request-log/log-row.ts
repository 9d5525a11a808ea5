import { isIP } from 'node:net';
import type { CallRecord } from './call-record.js';
import type { Outcome } from './request-log.entity.js';

/** One row as it goes to Postgres: column names, every value already in its column's domain. */
export interface LogRow {
  started_at: string;
  id: string;
  team_id: string;
  key_id: string;
  provider: string;
  method: string;
  path: string | null;
  model: string | null;
  streamed: boolean;
  status: number | null;
  outcome: Outcome;
  error_code: string | null;
  request_bytes: number;
  response_bytes: number;
  ttfb_ms: number | null;
  duration_ms: number | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cached_tokens: number | null;
  reasoning_tokens: number | null;
  provider_request_id: string | null;
  idempotency_key: string | null;
  sdk_retry_count: number | null;
  client_ip: string | null;
  user_agent: string | null;
}

const LONGEST_TEXT = 1_024;
const SMALLINT_MAX = 32_767;

/**
 * The row of a call that has ended.
 *
 * @param isSecret tells text that must not be kept: it holds a key
 */
export function toLogRow(call: CallRecord, isSecret: (text: string) => boolean): LogRow {
  const { origin } = call;
  const text = (value: string | null): string | null =>
    value === null || isSecret(value) ? null : storable(value);
  return {
    started_at: new Date(startOf(origin.id)).toISOString(),
    id: origin.id,
    team_id: origin.teamId,
    key_id: origin.keyId,
    provider: origin.provider,
    method: storable(origin.method),
    path: text(origin.path),
    model: null,
    streamed: call.streamed,
    status: integer(call.status, SMALLINT_MAX),
    outcome: call.outcome ?? 'interrupted',
    error_code: call.errorCode,
    request_bytes: call.requestBytes,
    response_bytes: call.responseBytes,
    ttfb_ms: milliseconds(call.ttfbMs),
    duration_ms: milliseconds(call.durationMs),
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    reasoning_tokens: null,
    provider_request_id: text(call.providerRequestId),
    idempotency_key: text(origin.idempotencyKey),
    sdk_retry_count: integer(origin.sdkRetryCount, SMALLINT_MAX),
    client_ip: address(origin.clientIp),
    user_agent: text(origin.userAgent),
  };
}

/** Epoch milliseconds inside a UUIDv7 (RFC 9562 5.7): its first 48 bits. */
export function startOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** Text that a Postgres `text` column takes: no NUL, no lone surrogate, at most 1,024 characters. */
function storable(value: string): string {
  return value.slice(0, LONGEST_TEXT).replaceAll('\0', '\ufffd').toWellFormed();
}

/** Null for what an integer column would refuse or a counter cannot be. */
function integer(value: number | null, max: number): number | null {
  return value !== null && Number.isInteger(value) && value >= 0 && value <= max ? value : null;
}

function milliseconds(value: number | null): number | null {
  return value !== null && Number.isFinite(value) && value >= 0 ? value : null;
}

/** Null for what `inet` would refuse: anything but a plain address (a zone is not part of one). */
function address(value: string | null): string | null {
  return value !== null && isIP(value) !== 0 && !value.includes('%') ? value : null;
}

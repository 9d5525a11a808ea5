import { isIP } from 'node:net';
import type { CallOrigin, CallRecord } from './call-record.js';
import type { Outcome } from './request-log.entity.js';
import type { Usage } from './token-figures.js';

/** Columns known before a call is forwarded. */
export interface BeginColumns {
  started_at: string;
  id: string;
  team_id: string;
  key_id: string;
  provider: string;
  method: string;
  path: string | null;
  idempotency_key: string | null;
  sdk_retry_count: number | null;
  client_ip: string | null;
  user_agent: string | null;
}

/** Columns known when the last byte of the answer is about to be written. */
export interface EndColumns {
  outcome: Outcome;
  status: number | null;
  error_code: string | null;
  streamed: boolean;
  request_bytes: number | null;
  response_bytes: number | null;
  ttfb_ms: number | null;
  duration_ms: number | null;
  provider_request_id: string | null;
}

/** Columns known once the answer has been read, and those that the last moment can still change. */
export interface UsageColumns {
  outcome: Outcome;
  error_code: string | null;
  duration_ms: number | null;
  model: string | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cached_tokens: number | null;
  reasoning_tokens: number | null;
}

/** One row as it goes to Postgres: every value is in its column's domain. */
export type LogRow = BeginColumns & EndColumns & UsageColumns;

const LONGEST_TEXT = 1_024;
const SMALLINT_MAX = 32_767;
const INT_MAX = 2_147_483_647;

/** NUL and half of a surrogate pair, which may or may not have its other half. */
const DOUBTFUL = /[\0\ud800-\udfff]/;

/** A key of the gateway's own format anywhere in a text. */
const KEY_FORMAT = /ptn_[0-9A-Za-z]{38}/;

/** @param key the caller's own key: text that contains it is not stored */
export function beginColumns(origin: CallOrigin, key: string): BeginColumns {
  return {
    started_at: startIso(origin.id),
    id: origin.id,
    team_id: origin.teamId,
    key_id: origin.keyId,
    provider: origin.provider,
    method: storable(origin.method),
    path: text(origin.path, key),
    idempotency_key: text(origin.idempotencyKey, key),
    sdk_retry_count: integer(origin.sdkRetryCount, SMALLINT_MAX),
    client_ip: address(origin.clientIp),
    user_agent: text(origin.userAgent, key),
  };
}

export function endColumns(call: CallRecord): EndColumns {
  return {
    outcome: call.outcome ?? 'interrupted',
    status: integer(call.status, SMALLINT_MAX),
    error_code: call.errorCode,
    streamed: call.streamed,
    request_bytes: integer(call.requestBytes, Number.MAX_SAFE_INTEGER),
    response_bytes: integer(call.responseBytes, Number.MAX_SAFE_INTEGER),
    ttfb_ms: milliseconds(call.ttfbMs),
    duration_ms: milliseconds(call.durationMs),
    provider_request_id: text(call.providerRequestId, call.origin.key),
  };
}

export function usageColumns(call: CallRecord, usage: Usage): UsageColumns {
  return {
    outcome: call.outcome ?? 'interrupted',
    error_code: call.errorCode,
    duration_ms: milliseconds(call.durationMs),
    model: text(call.requestModel ?? usage.model, call.origin.key),
    prompt_tokens: integer(usage.prompt_tokens, INT_MAX),
    completion_tokens: integer(usage.completion_tokens, INT_MAX),
    cached_tokens: integer(usage.cached_tokens, INT_MAX),
    reasoning_tokens: integer(usage.reasoning_tokens, INT_MAX),
  };
}

/** The whole row. Field by field: spreads over 25 columns take Node 20 some 19 µs. */
export function rowOf(begin: BeginColumns, end: EndColumns, read: UsageColumns): LogRow {
  return {
    started_at: begin.started_at,
    id: begin.id,
    team_id: begin.team_id,
    key_id: begin.key_id,
    provider: begin.provider,
    method: begin.method,
    path: begin.path,
    idempotency_key: begin.idempotency_key,
    sdk_retry_count: begin.sdk_retry_count,
    client_ip: begin.client_ip,
    user_agent: begin.user_agent,
    outcome: read.outcome,
    status: end.status,
    error_code: read.error_code,
    streamed: end.streamed,
    request_bytes: end.request_bytes,
    response_bytes: end.response_bytes,
    ttfb_ms: end.ttfb_ms,
    duration_ms: read.duration_ms,
    provider_request_id: end.provider_request_id,
    model: read.model,
    prompt_tokens: read.prompt_tokens,
    completion_tokens: read.completion_tokens,
    cached_tokens: read.cached_tokens,
    reasoning_tokens: read.reasoning_tokens,
  };
}

/** The model that answered, as it may be shown. */
export function answeringModel(call: CallRecord, usage: Usage): string | null {
  return text(usage.model, call.origin.key);
}

/** A call whose end nobody saw: this process died while it ran. What is not known is null. */
export const UNSEEN_END: EndColumns = {
  outcome: 'interrupted',
  status: null,
  error_code: null,
  streamed: false,
  request_bytes: null,
  response_bytes: null,
  ttfb_ms: null,
  duration_ms: null,
  provider_request_id: null,
};

/** Roughly the bytes a row takes in memory: its texts, and what is the same for all. */
export function weightOf(row: LogRow): number {
  const { path, user_agent, idempotency_key, provider_request_id, model } = row;
  let weight = 512;
  for (const value of [path, user_agent, idempotency_key, provider_request_id, model]) {
    weight += value?.length ?? 0;
  }
  return weight;
}

/** Epoch milliseconds inside a UUIDv7 (RFC 9562 5.7): its first 48 bits. */
export function startOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

let lastSecond = -1;
let lastPrefix = '';

/** ISO 8601. By the second, for toISOString takes Node 20 a microsecond and calls rarely share a millisecond. */
function startIso(id: string): string {
  const start = startOf(id);
  const second = Math.floor(start / 1_000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastPrefix = new Date(start).toISOString().slice(0, -4);
  }
  return `${lastPrefix}${String(start - second * 1_000).padStart(3, '0')}Z`;
}

/** Null for text that holds a key, the caller's or any other. */
export function showable(value: string | null, key: string): string | null {
  return value === null || value.includes(key) || KEY_FORMAT.test(value) ? null : value;
}

function text(value: string | null, key: string): string | null {
  const shown = showable(value, key);
  return shown === null ? null : storable(shown);
}

/**
 * Text that a Postgres `text` column takes: no NUL, no lone surrogate, at most 1,024 characters. By way of a buffer, for
 * a slice would keep the whole of a 64 KB header alive for as long as the row waits.
 */
function storable(value: string): string {
  if (value.length <= LONGEST_TEXT && !DOUBTFUL.test(value)) return value;
  return Buffer.from(value.slice(0, LONGEST_TEXT)).toString().replaceAll('\0', '\ufffd');
}

/** Null for what an integer column would refuse or a counter cannot be. */
function integer(value: number | null, max: number): number | null {
  return value !== null && Number.isInteger(value) && value >= 0 && value <= max ? value : null;
}

/** Null for what is no time; whole microseconds, so that no value is too small for `real`. */
function milliseconds(value: number | null): number | null {
  const known = value !== null && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  return known ? Math.round(value * 1_000) / 1_000 : null;
}

/** Null for what `inet` would refuse: anything but a plain address (a zone is not part of one). */
function address(value: string | null): string | null {
  return value !== null && isIP(value) !== 0 && !value.includes('%') ? value : null;
}

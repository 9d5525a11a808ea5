import type { Outcome } from '../request-log/request-log.entity.js';

/** A row of the request log under its column names. Times are ISO 8601 in UTC, durations milliseconds. */
export interface RequestView {
  id: string;
  started_at: string;
  recorded_at: string;
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
  request_bytes: number | null;
  response_bytes: number | null;
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

/** What `pg` gives: bigint as text, because a number could lose digits above 2^53. */
export type RequestRow = Omit<
  RequestView,
  'started_at' | 'recorded_at' | 'request_bytes' | 'response_bytes'
> & {
  started_at: Date;
  recorded_at: Date;
  request_bytes: string | null;
  response_bytes: string | null;
};

/** Columns one by one: a later column is shown only when somebody decided so. */
export const SHOWN_COLUMNS = [
  'id',
  'started_at',
  'recorded_at',
  'team_id',
  'key_id',
  'provider',
  'method',
  'path',
  'model',
  'streamed',
  'status',
  'outcome',
  'error_code',
  'request_bytes',
  'response_bytes',
  'ttfb_ms',
  'duration_ms',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'provider_request_id',
  'idempotency_key',
  'sdk_retry_count',
  'client_ip',
  'user_agent',
] as const satisfies (keyof RequestView)[];

export const SELECT_REQUESTS = `SELECT ${SHOWN_COLUMNS.join(', ')} FROM request_log`;

/** Byte counts are far below 2^53, so they are shown as numbers. */
export function requestView(row: RequestRow): RequestView {
  return {
    ...row,
    started_at: row.started_at.toISOString(),
    recorded_at: row.recorded_at.toISOString(),
    request_bytes: row.request_bytes === null ? null : Number(row.request_bytes),
    response_bytes: row.response_bytes === null ? null : Number(row.response_bytes),
  };
}

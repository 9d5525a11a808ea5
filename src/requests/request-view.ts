import type { RequestView } from './requests.schema.js';

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

import { v7 as uuidv7 } from 'uuid';
import { encodeLine, type JournalRecord } from '../../src/request-log/journal/record-codec.js';
import type { LogRow } from '../../src/request-log/columns.js';
import type { Outcome } from '../../src/request-log/outcome.js';
import { KEY, TEAM } from './rows.js';

/** How far a call came before the process died; `spilled`: its row waits whole in the journal. */
export type Progress = 'begun' | 'ended' | 'read' | 'spilled';

/** The records of a call as the request log writes them. */
export function recordsOf(
  progress: Progress,
  outcome: Outcome = 'completed',
  userAgent = 'test',
): JournalRecord[] {
  const id = uuidv7();
  const begin = {
    started_at: new Date(parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toISOString(),
    id,
    team_id: TEAM,
    key_id: KEY,
    provider: 'default',
    method: 'POST',
    path: '/v1/chat/completions',
    idempotency_key: null,
    sdk_retry_count: 0,
    client_ip: '127.0.0.1',
    user_agent: userAgent,
    end_user: 'user-1',
    session_id: null,
    tags: '{"env":"prod"}',
    subject: 'repo:acme/api:ref:refs/heads/main',
  };
  const end = {
    outcome,
    status: 200,
    error_code: null,
    streamed: true,
    request_bytes: 5_000_000_000,
    response_bytes: 7,
    ttfb_ms: 1.5,
    duration_ms: 2.5,
    provider_request_id: 'req_é',
    altered: null,
    error_cause: 'ECONNRESET',
  };
  const usage = {
    outcome,
    error_code: null,
    error_cause: 'ECONNRESET',
    duration_ms: 3.5,
    model: 'gpt-4o',
    prompt_tokens: 1,
    completion_tokens: 2,
    cached_tokens: 1,
    reasoning_tokens: null,
    cache_write_tokens: 0,
    extra_usage: '{"web_searches":1,"service_tier":"batch"}',
    cost_usd: '0.000142500',
    provider_error_type: 'invalid_request_error',
    provider_error_code: 'insufficient_quota',
  };
  const B: JournalRecord = { t: 'B', ...begin };
  const E: JournalRecord = { t: 'E', id, ...end };
  switch (progress) {
    case 'begun':
      return [B];
    case 'ended':
      return [B, E];
    case 'read':
      return [B, E, { t: 'U', id, ...usage }];
    case 'spilled':
      return [B, E, { t: 'R', ...begin, ...end, ...usage }];
  }
}

/** The end and the usage of a call whose process died before it could record them. */
const UNSEEN = {
  outcome: 'interrupted',
  status: null,
  error_code: null,
  streamed: false,
  request_bytes: null,
  response_bytes: null,
  ttfb_ms: null,
  duration_ms: null,
  provider_request_id: null,
  altered: null,
  error_cause: null,
  provider_error_type: null,
  provider_error_code: null,
  model: null,
  prompt_tokens: null,
  completion_tokens: null,
  cached_tokens: null,
  reasoning_tokens: null,
  cache_write_tokens: null,
  extra_usage: null,
  cost_usd: null,
  saved_usd: null,
  // The log writer sets it.
  price_id: null,
  end_user: null,
  session_id: null,
  tags: null,
  subject: null,
  charge_usd: null,
  charge_tokens: null,
  limit_subject: null,
  charge_rules: null,
  limit_session: null,
  call_id: null,
  attempt: null,
  usage_final: null,
  cost_low_usd: null,
  cost_high_usd: null,
  output_limit: null,
  input_limit: null,
} as const;

/** What must be known of the calls of a dead process when exactly these records of it are left. */
export function rowsOf(records: readonly JournalRecord[]): Map<string, LogRow> {
  const rows = new Map<string, LogRow>();
  const find = (t: JournalRecord['t'], id: string) => {
    const { t: _, ...values } = records.find((record) => record.t === t && record.id === id) ?? { t };
    return values;
  };
  for (const { id } of records) {
    const [begin, end, usage, whole] = (['B', 'E', 'U', 'R'] as const).map((t) => find(t, id));
    if ('id' in whole!) rows.set(id, { ...UNSEEN, ...whole } as LogRow);
    else if ('id' in begin!) {
      // The end is what says that there was one.
      const { outcome, error_code, duration_ms } = 'id' in end! ? { ...end, ...usage } : UNSEEN;
      rows.set(id, {
        ...UNSEEN,
        ...begin,
        ...end,
        ...usage,
        outcome,
        error_code,
        duration_ms,
        // Of a call whose response was never read, something may have been billed.
        ...(!('id' in usage!) && { usage_final: false }),
      } as LogRow);
    }
  }
  return rows;
}

export const linesOf = (records: readonly JournalRecord[]): Buffer[] => records.map(encodeLine);

import { v7 as uuidv7 } from 'uuid';
import { encodeLine, type JournalRecord } from '../../src/request-log/journal/record-codec.js';
import { type LogRow, UNSEEN_END } from '../../src/request-log/log-row.js';
import { NO_USAGE } from '../../src/request-log/token-figures.js';
import type { Outcome } from '../../src/request-log/request-log.entity.js';
import { KEY, TEAM } from './rows.js';

/** How far a call came before the process died; `parked`: its row waits whole in the journal. */
export type Progress = 'begun' | 'ended' | 'read' | 'parked';

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
  };
  const usage = {
    outcome,
    error_code: null,
    duration_ms: 3.5,
    model: 'gpt-4o',
    prompt_tokens: 1,
    completion_tokens: 2,
    cached_tokens: null,
    reasoning_tokens: null,
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
    case 'parked':
      return [B, E, { t: 'R', ...begin, ...end, ...usage }];
  }
}

/** What must be known of the calls of a dead process when exactly these records of it are left. */
export function rowsOf(records: readonly JournalRecord[]): Map<string, LogRow> {
  const rows = new Map<string, LogRow>();
  const find = <T extends JournalRecord['t']>(t: T, id: string) =>
    records.find((record): record is Extract<JournalRecord, { t: T }> => record.t === t && record.id === id);
  for (const { id } of records) {
    const { t: _, ...whole } = find('R', id) ?? { t: null };
    const { t: __, ...begin } = find('B', id) ?? { t: null };
    const { t: ___, ...end } = find('E', id) ?? { t: null, ...UNSEEN_END };
    const { t: ____, ...usage } = find('U', id) ?? { t: null };
    if ('id' in whole) rows.set(id, whole);
    else if ('id' in begin) rows.set(id, { ...begin, ...end, ...NO_USAGE, ...usage });
  }
  return rows;
}

export const linesOf = (records: readonly JournalRecord[]): Buffer[] => records.map(encodeLine);

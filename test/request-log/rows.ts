import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { LogRow } from '../../src/request-log/columns.js';
import { createPartitions } from '../../src/request-log/partitions.js';
import type { TestDatabase } from '../support/database.js';

export const TEAM = '01890a5d-ac96-774b-bcce-b302099a8057';
export const KEY = '01890a5d-ac96-774b-bcce-b302099a8058';

/** Creates the partitions of these times, as the gateway does. */
export async function createDays(database: TestDatabase, ...times: (Date | number)[]): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await createPartitions(
      client,
      times.map((time) => Number(time)),
    );
  } finally {
    await client.end();
  }
}

/** Puts a row into the log as the writer would. @returns its id */
export async function insertRow(
  database: TestDatabase,
  startedAt: Date,
  columns: Record<string, unknown> = {},
): Promise<string> {
  const id = uuidv7({ msecs: startedAt.getTime() });
  const row: Record<string, unknown> = {
    id,
    started_at: startedAt,
    team_id: TEAM,
    key_id: KEY,
    provider: 'default',
    method: 'POST',
    path: '/v1/chat/completions',
    model: 'gpt-4o',
    streamed: false,
    status: 200,
    outcome: 'completed',
    request_bytes: 10,
    response_bytes: 20,
    ...columns,
  };
  const names = Object.keys(row);
  await createDays(database, startedAt);
  await database.query(
    `INSERT INTO request_log (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(row),
  );
  return id;
}

/** A row as the writer gets it. */
export function logRow(startedAtMs: number, columns: Partial<LogRow> = {}): LogRow {
  return {
    started_at: new Date(startedAtMs).toISOString(),
    id: uuidv7({ msecs: startedAtMs }),
    team_id: TEAM,
    key_id: KEY,
    provider: 'default',
    method: 'POST',
    path: '/v1/chat/completions',
    model: 'gpt-4o',
    streamed: false,
    status: 200,
    outcome: 'completed',
    error_code: null,
    error_cause: null,
    provider_error_type: null,
    provider_error_code: null,
    request_bytes: 1_024,
    response_bytes: 700,
    ttfb_ms: 12.5,
    duration_ms: 80.25,
    altered: null,
    prompt_tokens: 7,
    completion_tokens: 9,
    cached_tokens: null,
    reasoning_tokens: null,
    provider_request_id: 'req_1',
    idempotency_key: null,
    sdk_retry_count: 0,
    client_ip: '203.0.113.7',
    user_agent: 'OpenAI/JS 6.49.0',
    cache_write_tokens: null,
    extra_usage: null,
    end_user: null,
    session_id: null,
    tags: null,
    subject: null,
    cost_usd: null,
    saved_usd: null,
    price_id: null,
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
    ...columns,
  };
}

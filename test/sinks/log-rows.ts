import { createPartitions } from '../../src/request-log/partitions.js';
import pg from 'pg';
import type { TestDatabase } from '../support/database.js';

/** Writes calls that are recorded now; the ID has the millisecond of the start, as those of the gateway do. */
const INSERT = `
  INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, path, model, streamed, status, outcome,
    request_bytes, response_bytes, ttfb_ms, duration_ms, prompt_tokens, completion_tokens, cost_usd, client_ip, tags)
  SELECT to_timestamp(ms / 1000.0),
    (substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
    COALESCE((SELECT id FROM team LIMIT 1), gen_random_uuid()), COALESCE((SELECT id FROM gateway_key LIMIT 1), gen_random_uuid()),
    'default', 'POST', '/v1/chat/completions', (ARRAY['gpt-4o-mini', 'gpt-4o', 'o4-mini'])[1 + i % 3], i % 2 = 0,
    200, 'completed', 400 + i % 100, 900 + i % 500, 80.5, 100 + i % 4000, 50 + i % 1500, 20 + i % 800,
    ((50 + i % 1500) * 0.15 + (20 + i % 800) * 0.60)::numeric / 1000000, '203.0.113.7', '{"env":"prod"}'
  FROM (SELECT i, ms, lpad(to_hex(ms), 12, '0') AS hex FROM (
    SELECT i, ($2::float8 + i * $3::float8)::bigint AS ms FROM generate_series(1, $1::int) AS i) AS times) AS calls`;

interface Calls {
  /** When the first one started. */
  from?: number;
  /** Milliseconds between two starts. */
  apart?: number;
}

export async function insertCalls(
  url: string,
  count: number,
  { from = Date.now(), apart = 0.001 }: Calls = {},
): Promise<void> {
  const client = new pg.Client(url);
  // Postgres may be killed: the query rejects.
  client.on('error', () => {});
  await client.connect();
  try {
    const days = Math.ceil((count * apart) / 86_400_000) + 1;
    await createPartitions(
      client,
      Array.from({ length: days }, (_, day) => from + day * 86_400_000),
    );
    await client.query(INSERT, [count, from, apart]);
  } finally {
    await client.end();
  }
}

/** The IDs of all rows, in order. */
export async function logIds(database: TestDatabase): Promise<string[]> {
  return (await database.query<{ id: string }>('SELECT id FROM request_log ORDER BY id')).map(({ id }) => id);
}

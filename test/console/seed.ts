import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { createPartitions, dayOf } from '../../src/request-log/partitions.js';

const DAY_MS = 86_400_000;
export const TEAMS = [
  'search',
  'support',
  'growth',
  'data-platform',
  'mobile',
  'checkout',
  'fraud',
  'research',
  'documentation',
  'billing',
  'internal-tools',
  // A name that would be markup if it were not shown as text.
  '<img src=x onerror=alert(1)>',
];
const KEYS = ['production', 'staging', 'ci', 'batch', 'notebook'];
/** Provider, model, USD per million input, cached input and output tokens; null: no price is known. */
const MODELS: [string, string, number | null, number | null, number | null][] = [
  ['openai', 'gpt-5-mini', 0.25, 0.025, 2],
  ['openai', 'gpt-5', 1.25, 0.125, 10],
  ['anthropic', 'claude-sonnet-4-5', 3, 0.3, 15],
  ['anthropic', 'claude-haiku-4-5', 1, 0.1, 5],
  ['gemini', 'gemini-2.5-flash', 0.3, 0.03, 2.5],
  ['mistral', 'mistral-small-latest', 0.1, 0.1, 0.3],
  ['vllm', 'house-model-7b', null, null, null],
];

const INSERT_ROWS = `
  WITH lots AS (
    SELECT i, ms,
      abs(hashtext('key' || i)::bigint) % 10000 / 10000.0 AS a, abs(hashtext('model' || i)::bigint) % 10000 / 10000.0 AS b,
      abs(hashtext('result' || i)::bigint) % 10000 / 10000.0 AS c, abs(hashtext('size' || i)::bigint) % 10000 / 10000.0 AS d
    FROM (SELECT i, ($1::float8 + i * $2::float8)::bigint AS ms FROM generate_series(1, $3::int) AS i) AS t),
  calls AS (
    SELECT lots.*, 1 + floor(power(a, 1.8) * array_length($4::uuid[], 1))::int AS key,
      1 + floor(power(b, 1.7) * array_length($6::text[], 1))::int AS model,
      c < 0.965 AS good, (900 + d * d * 60000)::int AS input, (40 + d * b * 4000)::int AS output
    FROM lots
    -- Fewer calls at night and at the weekend.
    WHERE c < 0.55 + 0.45 * sin(2 * pi() * (ms / 3600000.0 - 8) / 24)
       OR c > 0.95 AND extract(isodow FROM to_timestamp(ms / 1000.0)) < 6)
  INSERT INTO request_log (started_at, id, recorded_at, team_id, key_id, provider, method, path, model, streamed, status,
    outcome, error_code, request_bytes, response_bytes, ttfb_ms, duration_ms, prompt_tokens, completion_tokens,
    cached_tokens, reasoning_tokens, provider_request_id, sdk_retry_count, client_ip, user_agent, end_user, session_id,
    cost_usd)
  SELECT to_timestamp(ms / 1000.0),
    (substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7' || substr(md5(i::text), 1, 3) || '-8' || substr(md5(i::text), 4, 3)
      || '-' || substr(md5(i::text), 7, 12))::uuid,
    to_timestamp((ms + 40) / 1000.0),
    ($5::uuid[])[key], ($4::uuid[])[key], ($6::text[])[model], 'POST',
    CASE WHEN ($6::text[])[model] = 'anthropic' THEN '/v1/messages' ELSE '/v1/chat/completions' END,
    ($7::text[])[model], b < 0.6,
    CASE WHEN good THEN 200 WHEN c < 0.978 THEN 429 WHEN c < 0.986 THEN 500 WHEN c < 0.994 THEN 400 END,
    CASE WHEN good OR c < 0.994 THEN 'completed' WHEN c < 0.998 THEN 'client_aborted' ELSE 'upstream_timeout' END,
    CASE WHEN c >= 0.998 THEN 'upstream_timeout' END,
    400 + (d * 20000)::int, 300 + (d * b * 9000)::int, 90 + d * 900, 150 + d * b * 22000,
    CASE WHEN good THEN input END, CASE WHEN good THEN output END, CASE WHEN good THEN (input * a * 0.7)::int END,
    CASE WHEN good AND b < 0.3 THEN output / 2 END,
    'req_' || substr(md5(i::text), 1, 24), 0, '203.0.113.7', 'OpenAI/JS 6.49.0',
    'user-' || (i % 41), CASE WHEN a < 0.5 THEN 'session-' || (i / 50) END,
    CASE WHEN good THEN round(((input - (input * a * 0.7)::int) * ($8::numeric[])[model]
      + (input * a * 0.7)::int * ($9::numeric[])[model] + output * ($10::numeric[])[model]) / 1000000, 9) END
  FROM (SELECT calls.*, lpad(to_hex(ms), 12, '0') AS hex FROM calls) AS calls`;

export interface Seeded {
  teamIds: string[];
  keyIds: string[];
}

/**
 * Fills a database with 12 teams, 60 keys and the calls of 5 providers over three months. The same number of rows gives
 * the same data, but for the times, which end now.
 */
export async function seedConsole(
  url: string,
  { rows = 40_000, days = 90, now = Date.now() } = {},
): Promise<Seeded> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const start = now - days * DAY_MS;
    await createPartitions(
      client,
      Array.from({ length: days + 1 }, (_, index) => dayOf(start) + index * DAY_MS),
    );
    const { teamIds, keyIds } = await createKeys(client);
    await client.query(INSERT_ROWS, [
      start,
      (days * DAY_MS) / rows,
      rows,
      keyIds,
      keyIds.map((_, index) => teamIds[index % teamIds.length]),
      ...[0, 1, 2, 3, 4].map((column) => MODELS.map((model) => model[column])),
    ]);
    // The roll-up adds what was recorded after its cursor.
    await client.query('UPDATE usage_rollup SET cursor = to_timestamp(0)');
    await client.query('VACUUM (ANALYZE) request_log');
    return { teamIds, keyIds };
  } finally {
    await client.end();
  }
}

async function createKeys(client: pg.Client): Promise<Seeded> {
  const teamIds: string[] = [];
  const keyIds: string[] = [];
  for (const team of TEAMS) {
    const id = uuidv7();
    await client.query('INSERT INTO team (id, name) VALUES ($1, $2)', [id, team]);
    teamIds.push(id);
  }
  for (const name of KEYS) {
    for (const teamId of teamIds) {
      const id = uuidv7();
      await client.query('INSERT INTO gateway_key (id, team_id, name) VALUES ($1, $2, $3)', [
        id,
        teamId,
        name,
      ]);
      // The digest of a secret that nobody knows.
      await client.query(
        'INSERT INTO gateway_key_secret (id, key_id, digest, prefix) VALUES ($1, $2, sha256($3::bytea), $4)',
        [uuidv7(), id, id, `ptn_${id.slice(-8)}`],
      );
      keyIds.push(id);
    }
  }
  return { teamIds, keyIds };
}

type Send = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** Adds by the admin API what only it can add: providers with sealed secrets, and limits; and what was spent of those. */
export async function seedProvidersAndLimits(url: string, send: Send): Promise<void> {
  for (const name of new Set(MODELS.map(([provider]) => provider))) {
    await send('POST', '/admin/v1/providers', {
      name,
      url: name === 'vllm' ? 'http://127.0.0.1:8000' : `https://${name}.example.com`,
      secret: name === 'vllm' ? null : `sk-${name}-0123456789`,
    });
  }
  const budget = (usd: string, period: string) => ({ usd, period, alert_at: [80, 100] });
  const team = (name: string, body: object) =>
    send('PATCH', `/admin/v1/teams/${encodeURIComponent(name)}`, body);
  await team('search', { budgets: [budget('250.00', 'month'), budget('20.00', 'day')] });
  await team('support', {
    budgets: [budget('100.00', 'month')],
    limits: { requests_per_minute: 600, tokens_per_minute: 200_000 },
  });
  await team('growth', { budgets: [{ tokens: 2_000_000, period: 'day', alert_at: [80, 100] }] });
  await team('mobile', { budgets: [budget('40.00', 'week')], limits: { concurrent_requests: 20 } });
  await team('research', { budgets: [{ ...budget('1000.00', 'total'), mode: 'warn' }] });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`
      INSERT INTO limit_meter (rule_id, subject, window_start, spent, held, refused)
      SELECT r.id, '', CASE WHEN r.period = 'total' THEN to_timestamp(0)
          ELSE date_trunc(r.period, now(), r.time_zone) END,
        (r.amount * share)::bigint, (r.amount * held)::bigint, refused
      FROM limit_rule r JOIN team ON team.id = r.scope_id
        JOIN (VALUES ('search', 'month', 0.62, 0.01, 0), ('search', 'day', 0.91, 0.02, 0), ('support', 'month', 1.0, 0, 37),
          ('growth', 'day', 0.17, 0, 0), ('mobile', 'week', 0.84, 0.004, 0), ('research', 'total', 0.33, 0, 0))
          AS used (team, period, share, held, refused) ON used.team = team.name AND used.period = r.period`);
  } finally {
    await client.end();
  }
}

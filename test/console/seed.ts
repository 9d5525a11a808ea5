import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { digestKey, generateKey, shownPrefix } from '../../src/keys/key-secret.js';
import { createPartitions, dayOf } from '../../src/request-log/partitions.js';
import { ADD_NEW_ROWS, MOVE_CURSOR } from '../../src/usage/rollup-sql.js';

const DAY_MS = 86_400_000;
export const TEAMS = [
  'search',
  'support',
  'growth',
  'data-platform',
  'mobile',
  'checkout',
  // A name that would be markup if it were not shown as text.
  '<img src=x onerror=alert(1)>',
  'fraud',
  'research',
  'documentation',
  'billing',
  'customer-success-onboarding-and-translation-europe-middle-east-africa',
];
/** Names that a picture for readers shows instead. */
const PLAIN: Readonly<Record<string, string>> = {
  '<img src=x onerror=alert(1)>': 'internal-tools',
  'customer-success-onboarding-and-translation-europe-middle-east-africa': 'customer-success',
};
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
  ['vllm', 'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8-tuned-for-support-2026-10', null, null, null],
];

/** The provider that fails from 75 minutes before the end on. */
const FAILING = 'gemini';

const INSERT_ROWS = `
  WITH lots AS (
    SELECT i, ms,
      abs(hashtext('key' || i)::bigint) % 10000 / 10000.0 AS a, abs(hashtext('model' || i)::bigint) % 10000 / 10000.0 AS b,
      abs(hashtext('result' || i)::bigint) % 10000 / 10000.0 AS c, abs(hashtext('size' || i)::bigint) % 10000 / 10000.0 AS d
    -- Ever more calls.
    FROM (SELECT i, ($1::float8 + $2::float8 * power(i::float8 / $3::int, 0.6))::bigint AS ms
      FROM generate_series(1, $3::int) AS i) AS t),
  chosen AS (
    SELECT lots.*, lpad(to_hex(ms), 12, '0') AS hex, 1 + floor(power(a, 1.8) * array_length($4::uuid[], 1))::int AS key,
      1 + floor(power(b, 1.7) * array_length($6::text[], 1))::int AS model,
      (900 + d * d * 60000)::int AS input, (40 + d * b * 4000)::int AS output
    FROM lots
    -- Fewer calls at night and at the weekend.
    WHERE c < 0.55 + 0.45 * sin(2 * pi() * (ms / 3600000.0 - 8) / 24)
       OR c > 0.95 AND extract(isodow FROM to_timestamp(ms / 1000.0)) < 6),
  calls AS (
    SELECT *, ($6::text[])[model] = '${FAILING}' AND ms > $1::float8 + $2::float8 - 75 * 60000 AS fails FROM chosen),
  results AS (SELECT *, c < 0.965 AND NOT fails AS good, (input * a * 0.7)::int AS cached FROM calls)
  INSERT INTO request_log (started_at, id, recorded_at, team_id, key_id, provider, method, path, model, streamed, status,
    outcome, error_code, request_bytes, response_bytes, ttfb_ms, duration_ms, prompt_tokens, completion_tokens,
    cached_tokens, reasoning_tokens, provider_request_id, sdk_retry_count, client_ip, user_agent, end_user, session_id,
    cost_usd, price_id)
  SELECT to_timestamp(ms / 1000.0),
    (substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7' || substr(md5(i::text), 1, 3) || '-8' || substr(md5(i::text), 4, 3)
      || '-' || substr(md5(i::text), 7, 12))::uuid,
    to_timestamp((ms + 40) / 1000.0),
    ($5::uuid[])[key], ($4::uuid[])[key], ($6::text[])[model], 'POST',
    CASE WHEN ($6::text[])[model] = 'anthropic' THEN '/v1/messages' ELSE '/v1/chat/completions' END,
    ($7::text[])[model], b < 0.6,
    CASE WHEN good THEN 200 WHEN fails THEN 503 WHEN c < 0.978 THEN 429 WHEN c < 0.986 THEN 500 WHEN c < 0.994 THEN 400 END,
    CASE WHEN good OR fails OR c < 0.994 THEN 'completed' WHEN c < 0.998 THEN 'client_aborted' ELSE 'upstream_timeout' END,
    CASE WHEN NOT fails AND c >= 0.998 THEN 'upstream_timeout' END,
    400 + (d * 20000)::int, 300 + (d * b * 9000)::int, 90 + d * 900, 150 + d * b * 22000,
    CASE WHEN good THEN input END, CASE WHEN good THEN output END, CASE WHEN good THEN cached END,
    CASE WHEN good AND b < 0.3 THEN output / 2 END,
    'req_' || substr(md5(i::text), 1, 24), 0, '203.0.113.7', 'OpenAI/JS 6.49.0',
    'user-' || (i % 41), CASE WHEN a < 0.5 THEN 'session-' || (i / 50) END,
    CASE WHEN good THEN round(((input - cached) * ($8::numeric[])[model] + cached * ($9::numeric[])[model]
      + output * ($10::numeric[])[model]) / 1000000, 9) END,
    CASE WHEN good THEN ($11::uuid[])[model] END
  FROM results`;

export interface Seeded {
  teamIds: string[];
  keyIds: string[];
  /** The secret of the key search / production. */
  secret: string;
}

/**
 * Fills a database with 12 teams, 60 keys and the calls of 5 providers over three months. The same number of rows gives
 * the same data, but for the times, which end now. Some names are hostile or very long, unless they must be `plain`.
 */
export async function seedConsole(
  url: string,
  { rows = 40_000, days = 90, now = Date.now(), plain = false } = {},
): Promise<Seeded> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const start = now - days * DAY_MS;
    await createPartitions(
      client,
      Array.from({ length: days + 1 }, (_, index) => dayOf(start) + index * DAY_MS),
    );
    const seeded = await createKeys(client, start, plain);
    const { teamIds, keyIds } = seeded;
    await client.query(INSERT_ROWS, [
      start,
      days * DAY_MS,
      rows,
      keyIds,
      keyIds.map((_, index) => teamIds[index % teamIds.length]),
      ...[0, 1, 2, 3, 4].map((column) => MODELS.map((model) => model[column])),
      await createPrices(client),
    ]);
    await client.query(LIVES_OF_KEYS);
    // What the writer of the log notes of calls without a price.
    await client.query(`
      INSERT INTO unpriced_model (provider, model, day)
      SELECT DISTINCT provider, model, (started_at AT TIME ZONE 'UTC')::date FROM request_log
      WHERE status = 200 AND cost_usd IS NULL
      ON CONFLICT DO NOTHING`);
    // The sums at once, not by the hour: the gateway would be busy with that while it is tested.
    await client.query(ADD_NEW_ROWS, [new Date(0), new Date(now)]);
    await client.query(MOVE_CURSOR, [new Date(now)]);
    await client.query('VACUUM (ANALYZE) request_log, usage_slot, usage_day');
    return seeded;
  } finally {
    await client.end();
  }
}

/** Some keys have an owner, expire, or have ended after their last call. */
const LIVES_OF_KEYS = `
  WITH used AS (SELECT key_id, max(started_at) AS at FROM request_log GROUP BY key_id),
  touched AS (
    UPDATE gateway_key_secret s SET last_used_at = used.at FROM used WHERE used.key_id = s.key_id RETURNING s.key_id)
  UPDATE gateway_key k SET
    owner = CASE WHEN k.name = 'notebook' THEN (ARRAY['ana.silva', 'jonas.weber', 'mei.tanaka', 'o.adeyemi'])
      [1 + abs(hashtext(team.name)) % 4] || '@example.com' END,
    expires_at = CASE team.name || '/' || k.name WHEN 'fraud/ci' THEN used.at + interval '1 minute'
      WHEN 'billing/ci' THEN now() + interval '3 days' WHEN 'search/staging' THEN now() + interval '12 days' END,
    revoked_at = CASE team.name || '/' || k.name WHEN 'growth/batch' THEN used.at + interval '1 minute' END,
    disabled = team.name || '/' || k.name = 'mobile/batch'
  FROM team, used WHERE team.id = k.team_id AND used.key_id = k.id`;

async function createKeys(client: pg.Client, start: number, plain: boolean): Promise<Seeded> {
  const teamIds: string[] = [];
  const keyIds: string[] = [];
  const created = (index: number) => new Date(start - (60 - index) * 3_600_000);
  const secret = generateKey();
  for (const [index, team] of TEAMS.entries()) {
    const id = uuidv7();
    await client.query('INSERT INTO team (id, name, created_at) VALUES ($1, $2, $3)', [
      id,
      plain ? (PLAIN[team] ?? team) : team,
      created(index),
    ]);
    teamIds.push(id);
  }
  // Those of the first team are the newest ones.
  for (let place = KEYS.length * TEAMS.length - 1; place >= 0; place--) {
    const [team, key] = [Math.floor(place / KEYS.length), place % KEYS.length];
    const id = uuidv7();
    const at = created(60 - place);
    await client.query('INSERT INTO gateway_key (id, team_id, name, created_at) VALUES ($1, $2, $3, $4)', [
      id,
      teamIds[team],
      KEYS[key],
      at,
    ]);
    // Nobody knows the secrets of the others.
    const used = place === 0 ? secret : generateKey();
    await client.query(
      `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, created_at) VALUES ($1, $2, decode($3, 'hex'), $4, $5)`,
      [uuidv7(), id, digestKey(used), shownPrefix(used), at],
    );
    keyIds[key * TEAMS.length + team] = id;
  }
  return { teamIds, keyIds, secret };
}

const catalogOf = (provider: string) => (provider === 'gemini' ? 'google' : provider);

/** @returns the IDs of the prices of MODELS, null for those without one */
async function createPrices(client: pg.Client): Promise<(string | null)[]> {
  const ids: (string | null)[] = [];
  for (const [provider, model, input, cached, output] of MODELS) {
    const id = input === null ? null : uuidv7();
    ids.push(id);
    if (id === null) continue;
    await client.query(
      `INSERT INTO price (id, catalog, model, effective_from, input, cached_input, output, source)
       VALUES ($1, $2, $3, to_timestamp(0), $4, $5, $6, 'catalog')`,
      [id, catalogOf(provider), model, input, cached, output],
    );
  }
  return ids;
}

type Send = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** Team, period and which part of its budget in dollars is spent. */
const BUDGETS: [team: string, period: string, share: number][] = [
  ['search', 'month', 0.62],
  ['search', 'day', 0.91],
  ['support', 'month', 1],
  ['mobile', 'week', 0.84],
  ['research', 'total', 0.33],
];
const RATES: Record<string, object> = {
  support: { requests_per_minute: 600, tokens_per_minute: 200_000 },
  mobile: { concurrent_requests: 20 },
};

/** Adds by the admin API what only it can add: providers with sealed secrets, and limits; and what was spent of those. */
export async function seedProvidersAndLimits(url: string, send: Send): Promise<void> {
  for (const name of new Set(MODELS.map(([provider]) => provider))) {
    await send('POST', '/admin/v1/providers', {
      name,
      url: name === 'vllm' ? 'http://127.0.0.1:8000' : `https://${name}.example.com`,
      secret: name === 'vllm' ? null : `sk-${name}-0123456789`,
      default: name === 'openai',
      ...(name !== 'vllm' && { catalog: catalogOf(name) }),
    });
  }
  await send('POST', '/admin/v1/prices', {
    catalog: 'openai',
    model: 'text-embedding-3-*',
    input: '0.1',
    note: 'Enterprise agreement',
  });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ team: string; period: string; usd: number; tokens: number }>(`
      SELECT team.name AS team, period, coalesce(sum(cost_usd), 0)::float8 AS usd,
        coalesce(sum(prompt_tokens + completion_tokens), 0)::float8 AS tokens
      FROM team CROSS JOIN (VALUES ('day'), ('week'), ('month'), ('total')) AS periods (period)
        JOIN request_log ON team_id = team.id
          AND (period = 'total' OR started_at >= date_trunc(CASE period WHEN 'total' THEN 'year' ELSE period END, now(), 'UTC'))
      GROUP BY 1, 2`);
    const spent = (team: string, period: string) =>
      rows.find((row) => row.team === team && row.period === period) ?? { usd: 0, tokens: 0 };
    for (const team of new Set(['growth', ...BUDGETS.map(([name]) => name)])) {
      const budgets: object[] = BUDGETS.filter(([name]) => name === team).map(([, period, share]) => ({
        usd: Math.max(0.05, Math.floor((20 * spent(team, period).usd) / share) / 20).toFixed(2),
        period,
        mode: period === 'total' ? 'warn' : 'block',
        alert_at: [80, 100],
      }));
      if (team === 'growth') budgets.push({ tokens: 20_000_000, period: 'day', alert_at: [80, 100] });
      await send('PATCH', `/admin/v1/teams/${team}`, { budgets, limits: RATES[team] ?? null });
    }
    await limitOneKey(client, send);
    for (const { team, period, usd, tokens } of rows) {
      // As much as the log has, and something held for calls that have not ended.
      await client.query(
        `INSERT INTO limit_meter (rule_id, subject, window_start, spent, held, refused)
         SELECT r.id, '', CASE WHEN r.period = 'total' THEN to_timestamp(0) ELSE date_trunc(r.period, now(), r.time_zone) END,
           CASE r.resource WHEN 'usd' THEN $3 ELSE $4 END::bigint, CASE r.period WHEN 'total' THEN 0 ELSE r.amount / 100 END,
           CASE r.period WHEN 'month' THEN CASE team.name WHEN 'support' THEN 37 ELSE 0 END ELSE 0 END
         FROM limit_rule r JOIN team ON team.id = r.scope_id
         WHERE team.name = $1 AND r.period = $2 AND r.resource IN ('usd', 'tokens')
         ON CONFLICT (rule_id, subject, window_start)
         DO UPDATE SET spent = EXCLUDED.spent, held = EXCLUDED.held, refused = EXCLUDED.refused`,
        [team, period, Math.round(usd * 1e9), tokens],
      );
    }
    // The changes above were made within a second: as if several people had made them in the past weeks.
    await client.query(`
      UPDATE audit_log SET at = at - place * interval '53 hours',
        actor = (ARRAY['admin-token', 'ana.silva@example.com', 'terraform', 'jonas.weber@example.com'])[1 + place::int % 4]
      FROM (SELECT id AS of, row_number() OVER (ORDER BY id DESC) AS place FROM audit_log) AS places WHERE id = of`);
  } finally {
    await client.end();
  }
}

/** A budget of the key search / production, of which three quarters are spent. */
async function limitOneKey(client: pg.Client, send: Send): Promise<void> {
  const { rows } = await client.query<{ id: string; usd: number }>(`
    SELECT k.id, coalesce(sum(cost_usd), 0)::float8 AS usd FROM gateway_key k JOIN team ON team.id = k.team_id
      LEFT JOIN request_log r ON r.key_id = k.id AND r.started_at >= date_trunc('month', now(), 'UTC')
    WHERE team.name = 'search' AND k.name = 'production' GROUP BY 1`);
  const { id, usd } = rows[0]!;
  await send('PATCH', `/admin/v1/keys/${id}`, {
    budgets: [{ usd: Math.max(1, Math.ceil(usd / 0.75)).toFixed(2), period: 'month', alert_at: [80, 100] }],
  });
  await client.query(
    `INSERT INTO limit_meter (rule_id, subject, window_start, spent)
     SELECT id, '', date_trunc('month', now(), time_zone), $2::bigint FROM limit_rule WHERE scope_id = $1
     ON CONFLICT (rule_id, subject, window_start) DO UPDATE SET spent = EXCLUDED.spent`,
    [id, Math.round(usd * 1e9)],
  );
}

import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { EVENT_TYPES } from '../../src/webhooks/event-types.js';
import type { TestDatabase } from '../support/database.js';
import { insertRow } from '../request-log/rows.js';
import type { ConsoleGateway } from './console-gateway.js';

/** 200 characters without a place to break, and with many. */
export const LONG = {
  whole: `W${'ide'.repeat(66)}!`,
  words: `${'Customer Success EMEA and Onboarding '.repeat(6).slice(0, 197)}end`,
};

/** The longest names that teams and keys may have. */
const NAME = LONG.whole.slice(0, 100);
const WORDS = LONG.words.slice(0, 100).trim();

/** The longest name that a provider, a route or a token may have. */
export const NAME_63 = `p${'rovider'.repeat(9).slice(0, 62)}`;

/** A route and a provider have different names. */
export const ROUTE = `r${NAME_63.slice(1)}`;

export const KEYS_OF_ONE_TEAM = 10_000;

interface HostileIds {
  teamId: string;
  keyId: string;
  callId: string;
  priceId: string;
  personId: string;
  trustId: string;
  policyId: string;
  webhookId: string;
  sinkId: string;
}

/** What a database may hold at worst: long names everywhere, huge and tiny figures, 10,000 keys of one team. */
export async function seedHostileData(gateway: ConsoleGateway): Promise<HostileIds> {
  const { admin, database } = gateway;
  const budgets = [
    { usd: '99999999.99', period: 'month', alert_at: [80, 100] },
    { usd: '0.000001', period: 'day', mode: 'warn', alert_at: [] },
    { tokens: 1_000_000_000_000, period: 'total', alert_at: [] },
  ];
  const limits = {
    requests_per_minute: 1_000_000_000,
    tokens_per_minute: 1_000_000_000,
    concurrent_requests: 1,
  };
  const { id: teamId } = await admin<{ id: string }>('POST', '/admin/v1/teams', {
    name: NAME,
    budgets,
    limits,
  });
  await admin('POST', '/admin/v1/teams', {
    name: WORDS,
    models: [LONG.whole.slice(0, 128), 'short'],
  });
  const { id: keyId } = await admin<{ id: string }>('POST', '/admin/v1/keys', {
    team: NAME,
    name: NAME,
    budgets: [{ usd: '1234567.89', period: 'week', alert_at: [1, 2, 3, 100] }],
  });
  await admin('POST', '/admin/v1/providers', {
    name: NAME_63,
    url: `https://${'long-label.'.repeat(15)}example.com/${'path/'.repeat(20)}`,
    secret: 'sk-hostile-0123456789',
  });
  await admin('POST', '/admin/v1/groups', {
    name: NAME,
    note: LONG.words,
    teams: [NAME],
    budgets,
    limits,
    filtered_limits: [{ providers: [NAME_63], models: [LONG.whole.slice(0, 128)], requests_per_minute: 1 }],
  });
  await admin('POST', '/admin/v1/routes', {
    name: ROUTE,
    targets: [{ provider: NAME_63, models: { [LONG.whole.slice(0, 128)]: LONG.whole.slice(0, 128) } }],
  });
  const { id: priceId } = await admin<{ id: string }>('POST', '/admin/v1/prices', {
    catalog: 'openai',
    model: LONG.whole.slice(0, 128),
    input: '123456.123456',
    output: '0.000001',
    note: LONG.words,
  });
  const { id: trustId } = await admin<{ id: string }>('POST', '/admin/v1/trusts', {
    name: NAME,
    key: keyId,
    issuer: `https://${'long-label.'.repeat(15)}example.com/${'path/'.repeat(20)}`,
    audience: LONG.whole.slice(0, 512),
    claims: { sub: [LONG.whole.slice(0, 512), LONG.words], [LONG.whole.slice(0, 200)]: [1, true] },
    cidrs: ['2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '10.0.0.0/8'],
  });
  const { id: policyId } = await admin<{ id: string }>('POST', '/admin/v1/policies', {
    name: 'p'.repeat(63),
    url: `https://${'long-label.'.repeat(15)}example.com/${'path/'.repeat(20)}`,
    secret: `whsec_${Buffer.alloc(64, 1).toString('base64')}`,
    applies_to: { teams: [teamId], keys: [keyId], models: ['m'.repeat(128), `${'n'.repeat(127)}*`] },
    // It is not asked: the calls of these pages go on.
    enabled: false,
  });
  await insertTokens(database, { keyId, trustId });
  const personId = await insertPerson(database, keyId);
  const { id: webhookId } = await admin<{ id: string }>('POST', '/admin/v1/webhooks', {
    url: `https://${'long-label.'.repeat(15)}example.com/${'path/'.repeat(20)}`,
    events: EVENT_TYPES,
  });
  const { id: sinkId } = await admin<{ id: string }>('POST', '/admin/v1/sinks', {
    name: NAME_63,
    kind: 'http',
    url: `http://127.0.0.1:9/${'path/'.repeat(20)}`,
  });
  await insertKeys(database, teamId);
  const callId = await insertCalls(database, teamId, keyId);
  return { teamId, keyId, callId, priceId, personId, trustId, policyId, webhookId, sinkId };
}

/** A person with sign-ins from clients that name themselves at length. @returns their ID */
async function insertPerson(database: TestDatabase, keyId: string): Promise<string> {
  const [person] = await database.query<{ id: string }>(
    `INSERT INTO person (id, issuer, subject, name, email, last_sign_in_at)
     VALUES (gen_random_uuid(), $1, $2, $3, $4, now()) RETURNING id`,
    [
      `https://${'long-label.'.repeat(15)}example.com`,
      LONG.whole,
      LONG.whole.slice(0, 100),
      `${LONG.whole.slice(0, 100)}@example.com`,
    ],
  );
  await database.query(
    `INSERT INTO sign_in (id, person_id, key_id, surface, client_ip, program, expires_at, ended_at, end_reason, spent_refused_at)
     SELECT gen_random_uuid(), $1, $2, $3, '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', $3, now() + interval '1 day',
            CASE WHEN i > 2 THEN now() END, CASE WHEN i > 2 THEN 'no_team' END, now() FROM generate_series(1, 4) AS i`,
    [person!.id, keyId, LONG.whole.slice(0, 200)],
  );
  return person!.id;
}

/** Tokens that work, to a subject as long as there is one, and tokens that the trust has not accepted. */
async function insertTokens(
  database: TestDatabase,
  { keyId, trustId }: { keyId: string; trustId: string },
): Promise<void> {
  await database.query(
    `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, trust_id)
     SELECT gen_random_uuid(), $1, sha256(i::text::bytea), 'ptn_token', now() + interval '1 hour', 'exchange', $3, $2
     FROM generate_series(1, 25) AS i`,
    [keyId, trustId, LONG.whole.slice(0, 256)],
  );
  await database.query(
    `INSERT INTO trust_failure (id, trust_id, reason, claims)
     SELECT gen_random_uuid(), $1, $2, jsonb_build_object('sub', $3::text) FROM generate_series(1, 3)`,
    [trustId, `the claim ${LONG.whole.slice(0, 200)} does not have an accepted value`, LONG.whole],
  );
}

async function insertKeys(database: TestDatabase, teamId: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const now = Date.now();
    const ids = Array.from({ length: KEYS_OF_ONE_TEAM }, (_, index) =>
      uuidv7({ msecs: now - index * 60_000 }),
    );
    await client.query(
      `INSERT INTO gateway_key (id, team_id, name, created_at)
       SELECT id, $1, 'service-' || i, now() - i * interval '1 minute' FROM unnest($2::uuid[]) WITH ORDINALITY AS t (id, i)`,
      [teamId, ids],
    );
    await client.query(
      `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, created_at)
       SELECT id, id, sha256(id::text::bytea), 'ptn_' || substr(md5(id::text), 1, 8), created_at
       FROM gateway_key WHERE id = ANY ($1::uuid[])`,
      [ids],
    );
  } finally {
    await client.end();
  }
}

/** Calls of the last hour that were answered, and that failed in each way. @returns the ID of one with everything */
async function insertCalls(database: TestDatabase, teamId: string, keyId: string): Promise<string> {
  const about = {
    team_id: teamId,
    key_id: keyId,
    provider: NAME_63,
    model: LONG.whole.slice(0, 128),
    path: `/v1/${'segment/'.repeat(40)}`,
    end_user: LONG.whole,
    session_id: LONG.words,
    user_agent: `${LONG.whole} ${LONG.words}`,
    provider_request_id: LONG.whole,
    idempotency_key: LONG.words,
    tags: { [LONG.whole.slice(0, 60)]: LONG.words, project: LONG.whole },
    client_ip: '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    recorded_at: new Date(),
  };
  const big = {
    prompt_tokens: 2_000_000_000,
    completion_tokens: 2_000_000_000,
    cached_tokens: 1_999_999_999,
    cost_usd: '12345678.901234567',
    duration_ms: 86_399_999,
    ttfb_ms: 86_000_000,
    request_bytes: 2_147_483_647,
    response_bytes: 2_147_483_647,
  };
  const now = Date.now();
  const ends = [
    { status: 502, outcome: 'upstream_error', error_code: 'upstream_unreachable' },
    { status: null, outcome: 'client_aborted', error_code: null },
    { status: 504, outcome: 'upstream_timeout', error_code: 'upstream_timeout' },
    { status: 429, outcome: 'completed', error_code: null },
    { status: 200, outcome: 'interrupted', error_code: 'shutting_down' },
  ];
  for (const [index, end] of ends.entries())
    await insertRow(database, new Date(now - 60_000 * (index + 1)), { ...about, ...end });
  return insertRow(database, new Date(now - 1_000), { ...about, ...big, streamed: true });
}

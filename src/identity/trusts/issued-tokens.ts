import type { ClientBase } from 'pg';
import type { DataSource } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { digestKey, generateKey, shownPrefix } from '../../keys/key-secret.js';

/** Whether the key `k` of the team `t` may get tokens. */
const IN_FORCE = `k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled AND COALESCE(k.expires_at > now(), true)`;

const FIND_KEY = `
  SELECT FROM team t JOIN gateway_key k ON k.team_id = t.id JOIN trust tr ON tr.key_id = k.id
  WHERE tr.id = $1 AND ${IN_FORCE}`;

/**
 * Issues a token if its trust, key and team still allow it: their rows are locked until the transaction ends, so that a change
 * that ends them comes before the token or after it. FROM names them in the order in which `apply` locks their tables. `now` is
 * the clock that decides; concurrent exchanges may exceed max_live by their number. Tokens that ended when their key was
 * rotated or revoked do not count; a key is looked up for those of a former key only, as a join costs 28 ms with 100,000 tokens.
 */
const ISSUE = `
  WITH parents AS MATERIALIZED (
    SELECT tr.id AS trust_id, tr.key_id, tr.max_live, k.tokens_valid_from,
           LEAST(now() + make_interval(mins => tr.token_minutes), k.expires_at) AS expires_at
    FROM team t JOIN gateway_key k ON k.team_id = t.id JOIN trust tr ON tr.key_id = k.id
    WHERE tr.id = $1 AND tr.version = $2 AND tr.enabled AND ${IN_FORCE}
    FOR SHARE OF tr, t, k),
  live AS MATERIALIZED (
    SELECT count(*) AS tokens, min(expires_at) AS first_end FROM (
      SELECT s.expires_at FROM gateway_key_secret s
      WHERE s.trust_id = (SELECT trust_id FROM parents) AND s.expires_at > now()
        AND CASE WHEN s.key_id = (SELECT key_id FROM parents)
              THEN COALESCE(s.created_at > (SELECT tokens_valid_from FROM parents), true)
              ELSE (SELECT k.revoked_at IS NULL AND COALESCE(s.created_at > k.tokens_valid_from, true)
                    FROM gateway_key k WHERE k.id = s.key_id) END
      ORDER BY s.expires_at LIMIT (SELECT max_live FROM parents)) s),
  issued AS (
    INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, trust_id)
    SELECT $3, key_id, decode($4, 'hex'), $5, expires_at, 'exchange', $6, trust_id FROM parents, live
    WHERE live.tokens < max_live AND now() BETWEEN to_timestamp($7) AND to_timestamp($8)
    RETURNING expires_at)
  SELECT extract(epoch FROM now())::float8 AS now, EXISTS (SELECT FROM parents) AS allowed,
         (SELECT tokens >= max_live FROM parents, live) AS full,
         (SELECT ceil(extract(epoch FROM first_end - now()))::int FROM live) AS wait_s,
         (SELECT extract(epoch FROM expires_at - now())::float8 FROM issued) AS life_s`;

/**
 * Deletes a trust, and with it its tokens, which are locked in the order in which their last use is written. The foreign key
 * would lock them in any.
 */
export const DELETE_TRUST = `
  WITH one AS MATERIALIZED (SELECT id FROM trust WHERE id = $1 FOR UPDATE),
  tokens AS MATERIALIZED (
    SELECT id FROM gateway_key_secret WHERE trust_id IN (SELECT id FROM one) ORDER BY id FOR UPDATE)
  DELETE FROM trust WHERE id IN (SELECT id FROM one) AND (SELECT count(*) FROM tokens) >= 0 RETURNING id`;

/** What a token is issued for. */
export interface IssueRequest {
  trustId: string;
  /** The terms that the identity token was held against. */
  version: number;
  subject: string;
  /** In which Postgres's clock must be, in epoch seconds. */
  from: number;
  until: number;
}

/** `life_s` is null if none was issued. */
export interface IssueResult {
  /** Null if none was issued. */
  token: string | null;
  /** Whole seconds for which it works. */
  lifeS: number;
  now: number;
  allowed: boolean;
  full: boolean;
  /** Until the next of its tokens ends. */
  waitS: number;
}

interface Row {
  now: number;
  allowed: boolean;
  full: boolean | null;
  wait_s: number | null;
  life_s: number | null;
}

/** Whether the key of a trust and its team allow tokens now. @throws errors of the database */
export async function isKeyInForce(dataSource: DataSource, trustId: string): Promise<boolean> {
  return (await dataSource.query<object[]>(FIND_KEY, [trustId])).length > 0;
}

/**
 * Prepared in each session: to plan the statement takes Postgres longer than to run it. These sessions are of
 * DATABASE_DIRECT_URL, so no pooler gives them to others.
 *
 * @throws errors of the database
 */
export async function issueToken(dataSource: DataSource, request: IssueRequest): Promise<IssueResult> {
  const { trustId, version, subject, from, until } = request;
  const token = generateKey();
  const values = [trustId, version, uuidv7(), digestKey(token), shownPrefix(token), subject, from, until];
  const runner = dataSource.createQueryRunner();
  let row: Row;
  try {
    // TypeORM prepares none.
    const client = (await runner.connect()) as ClientBase;
    const { rows } = await client.query<Row>({ name: 'issue_token', text: ISSUE, values });
    row = rows[0]!;
  } finally {
    await runner.release();
  }
  return {
    token: row.life_s === null ? null : token,
    lifeS: Math.floor(row.life_s ?? 0),
    now: row.now,
    allowed: row.allowed,
    full: row.full ?? false,
    waitS: Math.max(1, row.wait_s ?? 1),
  };
}

import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { openPooled } from '../database/open-pool.js';
import type { Owner } from './fair-shares.js';
import { CLOSE_TIMEOUT_MS, withTimeout } from '../platform/with-timeout.js';

/** Responses of up to 8 MiB are stored through it. A claim that takes longer than the timeout is rejected. */
const POOL = { applicationName: 'postern-idempotency', poolSize: 8, queryTimeoutMs: 5_000 };
/** Lifetime of a record, from its claim. */
const LIFE = '24 hours';
/** Renewed by a timer of a third of it. */
export const LEASE_MS = 10_000;
const SWEPT_AT_ONCE = 500;

/** Notified with a record's id in hex when its call has ended, however it did. */
export const ENDED_CHANNEL = 'postern_idempotency';
const NOTIFY = `SELECT pg_notify('${ENDED_CHANNEL}', encode(id, 'hex')) FROM ended`;

/**
 * The one statement that decides who runs a call. An expired record is replaced unless its call still runs. The conflict
 * decides; the check before it spares duplicate requests the row lock, which ON CONFLICT takes even if it changes
 * nothing, and a commit to disk.
 */
const CLAIM = `
  INSERT INTO idempotency_record AS old (id, key_id, call_id, lease_until, expires_at)
  SELECT $1::bytea, $2::uuid, $3::uuid, now() + interval '${LEASE_MS} ms', now() + interval '${LIFE}'
  WHERE NOT EXISTS (
    SELECT 1 FROM idempotency_record WHERE id = $1 AND (expires_at > now() OR lease_until > now()))
  ON CONFLICT (id) DO UPDATE
  SET call_id = EXCLUDED.call_id, answer = NULL, stored_bytes = 0,
      lease_until = EXCLUDED.lease_until, expires_at = EXCLUDED.expires_at
  WHERE old.expires_at <= now() AND old.lease_until <= now()
  RETURNING 1`;
const STORE = `
  WITH ended AS (
    UPDATE idempotency_record SET answer = $3, stored_bytes = $4, lease_until = now()
    WHERE id = $1 AND call_id = $2 RETURNING id
  ) ${NOTIFY}`;
const RELEASE = `
  WITH ended AS (
    DELETE FROM idempotency_record r USING unnest($1::bytea[], $2::uuid[]) AS claim (id, call_id)
    WHERE r.id = claim.id AND r.call_id = claim.call_id AND r.answer IS NULL RETURNING r.id
  ) ${NOTIFY}`;
const ABANDON = `
  WITH ended AS (
    UPDATE idempotency_record r SET lease_until = '-infinity'
    FROM unnest($1::bytea[], $2::uuid[]) AS claim (id, call_id)
    WHERE r.id = claim.id AND r.call_id = claim.call_id AND r.answer IS NULL RETURNING r.id
  ) ${NOTIFY}`;
/** A record that is being ended is skipped: all others would wait for it until their leases had expired. */
const RENEW = `
  UPDATE idempotency_record SET lease_until = now() + interval '${LEASE_MS} ms'
  WHERE id IN (
    SELECT r.id FROM idempotency_record r, unnest($1::bytea[], $2::uuid[]) AS claim (id, call_id)
    WHERE r.id = claim.id AND r.call_id = claim.call_id AND r.answer IS NULL FOR UPDATE OF r SKIP LOCKED)`;
const STATES = `
  SELECT id, answer IS NOT NULL AS stored, lease_until <= now() AS lapsed, lease_until = '-infinity' AS abandoned
  FROM idempotency_record WHERE id = ANY ($1)`;
const READ = 'SELECT call_id, answer FROM idempotency_record WHERE id = $1 AND answer IS NOT NULL';
/** Cached responses have no lease: `lease_until` is the time at which they were stored. */
const STORE_CACHED = `
  INSERT INTO idempotency_record (id, key_id, call_id, answer, stored_bytes, lease_until, expires_at)
  VALUES ($1, $2, $3, $4, $5, now(), now() + make_interval(secs => $6))
  ON CONFLICT (id) DO UPDATE
  SET key_id = EXCLUDED.key_id, call_id = EXCLUDED.call_id, answer = EXCLUDED.answer,
      stored_bytes = EXCLUDED.stored_bytes, lease_until = EXCLUDED.lease_until, expires_at = EXCLUDED.expires_at`;
const READ_CACHED = `
  SELECT call_id, answer, floor(extract(epoch FROM now() - lease_until))::int AS age FROM idempotency_record
  WHERE id = $1 AND answer IS NOT NULL AND expires_at > now() AND lease_until > now() - make_interval(secs => $2)`;
/** Replicas that sweep at the same time share the work. */
const SWEEP = `
  DELETE FROM idempotency_record WHERE id IN (
    SELECT id FROM idempotency_record WHERE expires_at <= now() AND lease_until <= now()
    LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED)`;
const SIZES = `
  SELECT s.key_id AS "keyId", COALESCE(k.team_id, s.key_id) AS "teamId", s.bytes
  FROM (SELECT key_id, sum(stored_bytes)::float8 AS bytes FROM idempotency_record GROUP BY key_id) s
  LEFT JOIN gateway_key k ON k.id = s.key_id`;

/** Whose call holds which record. */
export interface Holder {
  readonly id: Buffer;
  readonly callId: string;
}

export interface RecordState {
  id: Buffer;
  stored: boolean;
  /** Its process is silent, or could not reach Postgres. */
  lapsed: boolean;
  /** Its process gave it up. */
  abandoned: boolean;
}

/** Every statement on `idempotency_record`. Only the holder of a claim can end it. */
@Injectable()
export class IdempotencyRecords implements OnApplicationShutdown {
  private readonly pool: pg.Pool;
  private readonly hasSessions: boolean;

  constructor(@InjectSettings() env: Settings) {
    this.hasSessions = directUrl(env) === env.databaseUrl;
    this.pool = openPooled(env, POOL, new Logger('Idempotency'));
  }

  /** @returns whether the call may run; if not, another one with this id has run or is running */
  async claim({ id, callId }: Holder, keyId: string): Promise<boolean> {
    return (await this.pool.query(CLAIM, [id, keyId, callId])).rowCount === 1;
  }

  /** @param response encrypted @returns whether the claim was still held */
  async store({ id, callId }: Holder, response: Buffer): Promise<boolean> {
    return (await this.pool.query(STORE, [id, callId, response, response.length])).rowCount === 1;
  }

  /** For calls that a duplicate request may run again. */
  async release(holders: readonly Holder[]): Promise<void> {
    await this.pool.query(RELEASE, columns(holders));
  }

  /** For calls whose outcome stays unknown. */
  async abandon(holders: readonly Holder[]): Promise<void> {
    await this.pool.query(ABANDON, columns(holders));
  }

  async renew(holders: readonly Holder[]): Promise<void> {
    await this.pool.query(RENEW, columns(holders));
  }

  async states(ids: readonly Buffer[]): Promise<RecordState[]> {
    return (await this.pool.query<RecordState>(STATES, [ids])).rows;
  }

  async read(id: Buffer): Promise<{ callId: string; response: Buffer } | null> {
    const { rows } = await this.pool.query<{ call_id: string; answer: Buffer }>(READ, [id]);
    return rows[0] === undefined ? null : { callId: rows[0].call_id, response: rows[0].answer };
  }

  /** @param response encrypted */
  async storeCached(
    { id, callId }: Holder,
    keyId: string,
    response: Buffer,
    ttlSeconds: number,
  ): Promise<void> {
    const values = [id, keyId, callId, response, response.length, ttlSeconds];
    await this.pool.query({ ...this.named('store-cached'), text: STORE_CACHED, values });
  }

  /** @returns null if there is no response of at most this age; the age in seconds */
  async readCached(
    id: Buffer,
    ttlSeconds: number,
  ): Promise<{ callId: string; response: Buffer; age: number } | null> {
    const query = { ...this.named('read-cached'), text: READ_CACHED, values: [id, ttlSeconds] };
    const { rows } = await this.pool.query<{ call_id: string; answer: Buffer; age: number }>(query);
    const [row] = rows;
    return row === undefined
      ? null
      : { callId: row.call_id, response: row.answer, age: Math.max(0, row.age) };
  }

  /** Deletes what has expired, in steps. @returns how many */
  async sweep(): Promise<number> {
    let swept = 0;
    for (;;) {
      const { rowCount } = await this.pool.query(SWEEP);
      swept += rowCount!;
      if (rowCount! < SWEPT_AT_ONCE) return swept;
    }
  }

  /** Bytes stored for each gateway key. */
  async sizes(): Promise<(Owner & { bytes: number })[]> {
    return (await this.pool.query<Owner & { bytes: number }>(SIZES)).rows;
  }

  /** A prepared statement belongs to a session. */
  private named(name: string): { name?: string } {
    return this.hasSessions ? { name } : {};
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT_MS, this.pool.end());
  }
}

function columns(holders: readonly Holder[]): [ids: Buffer[], callIds: string[]] {
  return [holders.map(({ id }) => id), holders.map(({ callId }) => callId)];
}

import { Inject, Injectable, Logger, type OnApplicationShutdown, Optional } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { openPooled } from '../database/open-pool.js';
import { Regressions } from '../regressions/regressions.service.js';
import type { Owner } from './fair-shares.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { LIFE, type LostRecord, putBackAbandoned, putBackHeld } from './lost-records.js';

/** Responses of up to 8 MiB are stored through it. A claim that takes longer than the timeout is rejected. */
const POOL = {
  applicationName: 'postern-idempotency',
  poolSize: 8,
  queryTimeout: patience('an idempotency record', 5_000),
};
/** Renewed by a timer of a third of it. */
export const LEASE_MS = 10_000;
const SWEPT_AT_ONCE = 500;
/** On connections that lead to another server than before. */
const CLAIM_TRIES = 3;
/** Of a SHA-256. */
const ID_BYTES = 32;
/** A larger response is not part of the result of a look-up, which may have a hundred of them. */
const MAX_FOUND_BYTES = 65_536;

/** Notified with a record's id in hex when its call has ended, however it did. */
export const ENDED_CHANNEL = 'postern_idempotency';
const NOTIFY = `SELECT pg_notify('${ENDED_CHANNEL}', encode(id, 'hex')) FROM ended`;

/**
 * The one statement that decides who runs a call. An expired record is replaced unless its call still runs. The conflict
 * decides; the check before it spares duplicate requests the row lock, which ON CONFLICT takes even if it changes
 * nothing, and a commit to disk. On another server than $4, nobody gets it: what that server has lost is not
 * put back yet.
 */
const CLAIM = `
  WITH claimed AS (
  INSERT INTO idempotency_record AS old (id, key_id, call_id, lease_until, expires_at)
  SELECT $1::bytea, $2::uuid, $3::uuid, now() + interval '${LEASE_MS} ms', now() + interval '${LIFE}'
  WHERE ($4::timestamptz IS NULL OR pg_postmaster_start_time() = $4) AND NOT EXISTS (
    SELECT 1 FROM idempotency_record WHERE id = $1 AND (expires_at > now() OR lease_until > now()))
  ON CONFLICT (id) DO UPDATE
  SET call_id = EXCLUDED.call_id, answer = NULL, stored_bytes = 0,
      lease_until = EXCLUDED.lease_until, expires_at = EXCLUDED.expires_at
  WHERE old.expires_at <= now() AND old.lease_until <= now()
  RETURNING 1)
  SELECT EXISTS (SELECT FROM claimed) AS won, $4::timestamptz IS NULL OR pg_postmaster_start_time() = $4 AS same`;
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
/**
 * Cached responses have no lease: `lease_until` is the time at which they were stored. IDs and responses of a batch are one
 * value each, cut into pieces by Postgres: pg would write an array of them in hex.
 */
const STORE_CACHED = `
  INSERT INTO idempotency_record (id, key_id, call_id, answer, stored_bytes, lease_until, expires_at)
  SELECT substring($1::bytea FROM (n * ${ID_BYTES} - ${ID_BYTES - 1})::int FOR ${ID_BYTES}), key_id, call_id,
    substring($2::bytea FROM first FOR bytes), bytes, now(), now() + make_interval(secs => ttl)
  FROM unnest($3::uuid[], $4::uuid[], $5::int[], $6::int[], $7::int[]) WITH ORDINALITY
    AS new (key_id, call_id, first, bytes, ttl, n)
  ON CONFLICT (id) DO UPDATE
  SET key_id = EXCLUDED.key_id, call_id = EXCLUDED.call_id, answer = EXCLUDED.answer,
      stored_bytes = EXCLUDED.stored_bytes, lease_until = EXCLUDED.lease_until, expires_at = EXCLUDED.expires_at`;
/** One after the other by the primary key, whatever the planner believes of a table that was not analyzed yet. */
const FIND_CACHED = `
  SELECT n::int, r.call_id AS "callId", r.age,
    CASE WHEN r.call_id IS DISTINCT FROM known AND r.stored_bytes <= ${MAX_FOUND_BYTES} THEN r.answer END AS response
  FROM unnest($2::uuid[], $3::int[]) WITH ORDINALITY AS wanted (known, ttl, n), LATERAL (
    SELECT call_id, answer, stored_bytes, floor(extract(epoch FROM now() - lease_until))::int AS age
    FROM idempotency_record
    WHERE id = substring($1::bytea FROM (n * ${ID_BYTES} - ${ID_BYTES - 1})::int FOR ${ID_BYTES}) AND answer IS NOT NULL
      AND expires_at > now() AND lease_until > now() - make_interval(secs => ttl)
    LIMIT 1) AS r`;
const READ_CACHED = 'SELECT answer FROM idempotency_record WHERE id = $1 AND call_id = $2';
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

/** A response to be stored in the cache. */
export interface NewCached extends Holder {
  readonly keyId: string;
  /** Encrypted. */
  readonly response: Buffer;
  readonly ttlSeconds: number;
}

/** A cached response that is looked up. */
export interface WantedCached {
  readonly id: Buffer;
  readonly ttlSeconds: number;
  /** The call whose response is in memory; null: none. */
  readonly known: string | null;
}

/** A cached response that was found. */
export interface FoundCached {
  readonly callId: string;
  /** Seconds since it was stored. */
  readonly age: number;
  /** Encrypted; null if it is in memory, or too large for a look-up. */
  readonly response: Buffer | null;
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

  constructor(
    @InjectSettings() env: Settings,
    @Optional() @Inject(Regressions) private readonly regressions?: Regressions,
  ) {
    this.hasSessions = directUrl(env) === env.databaseUrl;
    this.pool = openPooled(env, POOL, new Logger('Idempotency'));
  }

  /**
   * Waits while processes put back what Postgres has lost, half a minute at most.
   *
   * @returns whether the call may run; if not, another one with this id has run or is running
   */
  async claim({ id, callId }: Holder, keyId: string): Promise<boolean> {
    for (let tries = 0; tries < CLAIM_TRIES; tries++) {
      const server = this.regressions === undefined ? null : await this.regressions.admitted();
      const client = await this.pool.connect();
      // One that leads to another server, or has failed, is not used again.
      let isBroken = true;
      try {
        const { rows } = await client.query<{ won: boolean; same: boolean }>(CLAIM, [
          id,
          keyId,
          callId,
          server,
        ]);
        isBroken = !rows[0]!.same;
        if (!isBroken) return rows[0]!.won;
      } finally {
        client.release(isBroken);
      }
      this.regressions?.doubt();
    }
    throw new Error('connections to Postgres lead to different servers');
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

  /** Puts back what calls under way hold. @returns how many Postgres had lost */
  async putBackHeld(lost: readonly LostRecord[]): Promise<number> {
    return lost.length === 0 ? 0 : (await this.pool.query(putBackHeld(lost, LEASE_MS))).rowCount!;
  }

  /** Puts back records of calls that have ended. @returns how many Postgres had lost */
  async putBackAbandoned(lost: readonly LostRecord[]): Promise<number> {
    return lost.length === 0 ? 0 : (await this.pool.query(putBackAbandoned(lost))).rowCount!;
  }

  async states(ids: readonly Buffer[]): Promise<RecordState[]> {
    return (await this.pool.query<RecordState>(STATES, [ids])).rows;
  }

  async read(id: Buffer): Promise<{ callId: string; response: Buffer } | null> {
    const { rows } = await this.pool.query<{ call_id: string; answer: Buffer }>(READ, [id]);
    return rows[0] === undefined ? null : { callId: rows[0].call_id, response: rows[0].answer };
  }

  /** @param entries with different IDs, in their order: two statements then lock what they share in the same order */
  async storeCached(entries: readonly NewCached[]): Promise<void> {
    const firsts: number[] = [];
    let bytes = 0;
    for (const { response } of entries) {
      firsts.push(bytes + 1);
      bytes += response.length;
    }
    const values = [
      Buffer.concat(entries.map(({ id }) => id)),
      Buffer.concat(entries.map(({ response }) => response)),
      arrayOf(entries.map(({ keyId }) => keyId)),
      arrayOf(entries.map(({ callId }) => callId)),
      arrayOf(firsts),
      arrayOf(entries.map(({ response }) => response.length)),
      arrayOf(entries.map(({ ttlSeconds }) => ttlSeconds)),
    ];
    await this.pool.query({ ...this.named('store-cached'), text: STORE_CACHED, values });
  }

  /** @returns for each, in their order, null if there is no response of at most this age */
  async findCached(wanted: readonly WantedCached[]): Promise<(FoundCached | null)[]> {
    const values = [
      Buffer.concat(wanted.map(({ id }) => id)),
      arrayOf(wanted.map(({ known }) => known ?? 'NULL')),
      arrayOf(wanted.map(({ ttlSeconds }) => ttlSeconds)),
    ];
    const query = { ...this.named('find-cached'), text: FIND_CACHED, values };
    const { rows } = await this.pool.query<FoundCached & { n: number }>(query);
    const found: (FoundCached | null)[] = wanted.map(() => null);
    // The clock of Postgres may have stepped back.
    for (const { n, callId, age, response } of rows)
      found[n - 1] = { callId, age: Math.max(0, age), response };
    return found;
  }

  /** @returns the encrypted response; null if another one has replaced it, or it has expired */
  async readCached({ id, callId }: Holder): Promise<Buffer | null> {
    const query = { ...this.named('read-cached'), text: READ_CACHED, values: [id, callId] };
    return (await this.pool.query<{ answer: Buffer | null }>(query)).rows[0]?.answer ?? null;
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
    await withTimeout(CLOSE_TIMEOUT.ms, this.pool.end());
  }
}

/** An array in Postgres's notation, of values that need no quotes: pg would look at each character of them. */
function arrayOf(values: readonly (string | number)[]): string {
  return `{${values.join()}}`;
}

function columns(holders: readonly Holder[]): [ids: Buffer[], callIds: string[]] {
  return [holders.map(({ id }) => id), holders.map(({ callId }) => callId)];
}

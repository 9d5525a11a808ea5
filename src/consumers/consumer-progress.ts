import type { ClientBase } from 'pg';
import type { EntityManager } from 'typeorm';
import { FIRST_ID, LAST_ID, type Place } from '../request-log/log-cursor.js';
import { recordedUntil } from '../request-log/recorded-until.js';
import type { LogConsumer } from './log-consumers.js';

type Client = Pick<ClientBase, 'query'>;

const READ =
  'SELECT recorded_until AS "recordedAt", recorded_until_id AS id FROM log_consumer WHERE name = $1';
const CREATE = `
  INSERT INTO log_consumer (name, recorded_until, recorded_until_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`;
const AT_CURSOR = 'name = $1 AND (recorded_until, recorded_until_id) = ($2, $3)';
const LOCK = `SELECT pg_current_xact_id()::text AS transaction FROM log_consumer WHERE ${AT_CURSOR} FOR UPDATE`;
const MOVE = `
  UPDATE log_consumer SET recorded_until = $4, recorded_until_id = $5, updated_at = clock_timestamp() WHERE ${AT_CURSOR}`;
const IN_TRANSACTION = 'pg_current_xact_id() = $6::text::xid8';

/** Where a consumer is. One that is new begins where it wants to. */
export async function progressOf(client: Client, name: string, { from }: LogConsumer): Promise<Place> {
  for (;;) {
    const place = (await client.query<Place>(READ, [name])).rows[0];
    if (place !== undefined) return place;
    const begin =
      from === 'start'
        ? { recordedAt: new Date(0), id: FIRST_ID }
        : { recordedAt: await recordedUntil(client), id: LAST_ID };
    await client.query(CREATE, [name, begin.recordedAt, begin.id]);
  }
}

/** Moves over a time without rows, unless the consumer is elsewhere by now. */
export async function skipTo(client: Client, name: string, from: Place, until: Date): Promise<void> {
  await client.query(MOVE, [name, from.recordedAt, from.id, until, LAST_ID]);
}

/** Locks the progress for a transaction. @returns the ID of the transaction; null if the consumer is elsewhere by now */
export async function lockAt(manager: EntityManager, name: string, place: Place): Promise<string | null> {
  const rows = await manager.query<{ transaction: string }[]>(LOCK, [name, place.recordedAt, place.id]);
  return rows[0]?.transaction ?? null;
}

/**
 * @param transaction that of `lockAt`
 * @throws QueryFailedError also if a statement before it failed, whoever caught its error: nothing would be committed
 * @throws Error if the transaction has ended meanwhile: what the consumer wrote is committed already, or lost
 */
export async function moveTo(
  manager: EntityManager,
  name: string,
  [from, to]: readonly [Place, Place],
  transaction: string,
): Promise<void> {
  const values = [name, from.recordedAt, from.id, to.recordedAt, to.id, transaction];
  const [, moved] = await manager.query<[unknown[], number]>(`${MOVE} AND ${IN_TRANSACTION}`, values);
  if (moved !== 1)
    throw new Error(
      'the consumer has ended the transaction of its manager: it must not commit or roll back, and these rows come again',
    );
}

const LATEST = 'SELECT max(recorded_until) AS at FROM log_consumer';

/** The time up to which a consumer has rows; null: there is none. */
export async function latestGiven(client: Client): Promise<Date | null> {
  return (await client.query<{ at: Date | null }>(LATEST)).rows[0]!.at;
}

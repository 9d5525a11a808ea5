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
const LOCK = `SELECT FROM log_consumer WHERE ${AT_CURSOR} FOR UPDATE`;
const MOVE = `
  UPDATE log_consumer SET recorded_until = $4, recorded_until_id = $5, updated_at = clock_timestamp() WHERE ${AT_CURSOR}`;

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

/** Locks the progress for a transaction. @returns false if the consumer is elsewhere by now */
export async function lockAt(manager: EntityManager, name: string, place: Place): Promise<boolean> {
  const rows = await manager.query<unknown[]>(LOCK, [name, place.recordedAt, place.id]);
  return rows.length === 1;
}

/** @throws QueryFailedError also if a statement before it failed, whoever caught its error: nothing would be committed */
export async function moveTo(manager: EntityManager, name: string, from: Place, to: Place): Promise<void> {
  await manager.query(MOVE, [name, from.recordedAt, from.id, to.recordedAt, to.id]);
}

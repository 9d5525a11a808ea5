import type { EntityManager } from 'typeorm';
import type { Actor } from '../../platform/actor.js';
import type { RecordedSession, SessionRecorder } from './session-recorder.js';

/** Whose sessions end. */
export interface SessionsToEnd {
  /** As Access.userId says it; absent: whoever's. */
  userId?: string;
  /** Session at the OpenID provider. Those of the user that are bound to none end too. Absent: whichever. */
  idpSid?: string;
}

/** Locked in one order: several requests may end them at a time. */
const END = `
  DELETE FROM admin_session WHERE id IN (
    SELECT id FROM admin_session
    WHERE CASE WHEN $2::text IS NULL THEN user_id = $1
               ELSE idp_sid = $2 AND ($1::text IS NULL OR user_id = $1) OR idp_sid IS NULL AND user_id = $1 END
    ORDER BY id FOR UPDATE)
  RETURNING id, actor AS name, role, expires_at`;

/**
 * Ends sessions of the console and records it.
 *
 * @returns how many there were
 * @throws Error without a member, which would end those of everybody
 */
export async function endSessions(
  manager: EntityManager,
  recorder: SessionRecorder,
  { userId, idpSid }: SessionsToEnd,
  by: Actor,
): Promise<number> {
  if (userId === undefined && idpSid === undefined) throw new Error('no sessions are named');
  const [rows] = await manager.query<[RecordedSession[], number]>(END, [userId ?? null, idpSid ?? null]);
  for (const row of rows) await recorder.record(manager, by, 'ended', row);
  return rows.length;
}

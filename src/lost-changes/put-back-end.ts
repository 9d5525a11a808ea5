import type { EntityManager } from 'typeorm';
import { endSessions } from '../admin/sessions/end-sessions.js';
import type { SessionRecorder } from '../admin/sessions/session-recorder.js';
import { type EntryRow, isSetLater } from '../audit/entry-rows.js';
import { endPerson } from '../identity/sign-in/end-sign-ins.js';
import { DELETE_TRUST } from '../identity/trusts/issued-tokens.js';
import type { Actor } from '../platform/actor.js';
import { endsOf, SECRET } from './end-of.js';

/** Statements that end a subject for good. None changes one that has ended. */
const FINAL: Record<string, string> = {
  key: `
    UPDATE gateway_key SET revoked_at = now(), version = version + 1 WHERE id = $1 AND revoked_at IS NULL RETURNING id`,
  issued_token: `
    UPDATE gateway_key_secret SET expires_at = now() WHERE id = $1 AND kind <> 'key' AND expires_at > now() RETURNING id`,
  sign_in: `
    UPDATE sign_in SET ended_at = now(), end_reason = 'ended', idp_refresh = NULL
    WHERE id = $1 AND ended_at IS NULL RETURNING id`,
  session: 'DELETE FROM admin_session WHERE id = $1 RETURNING id',
  token: 'DELETE FROM admin_token WHERE id = $1 RETURNING id',
  trust: DELETE_TRUST,
};

/** Only what is in a grace: if the rotation that began it is lost too, it is the secret that works. */
const END_SECRET = `
  UPDATE gateway_key_secret SET expires_at = now() WHERE id = $1 AND kind = 'key' AND expires_at > now() RETURNING id`;

const END_TOKENS = `
  UPDATE gateway_key SET tokens_valid_from = $2 WHERE id = $1 AND COALESCE(tokens_valid_from < $2, true) RETURNING id`;

/**
 * Waits for changes of the subject that are being made: whether a later one sets it is asked after that. The team of a key
 * first, as `apply` locks the tables: the second change of a key in a transaction would lock it after the key.
 */
const LOCK: Record<string, string> = {
  key: `
    SELECT FROM team t JOIN gateway_key k ON k.team_id = t.id WHERE k.id = $1
    FOR KEY SHARE OF t FOR NO KEY UPDATE OF k`,
  team: 'SELECT FROM team WHERE id = $1 FOR NO KEY UPDATE',
  trust: 'SELECT FROM trust WHERE id = $1 FOR NO KEY UPDATE',
};

/** Statements that stop a subject, by its type and the setting. */
const STOP: Record<string, string> = {
  'key disabled':
    'UPDATE gateway_key SET disabled = true, version = version + 1 WHERE id = $1 AND NOT disabled RETURNING id',
  'key expires_at': `
    UPDATE gateway_key SET expires_at = $2, version = version + 1
    WHERE id = $1 AND COALESCE(expires_at > $2, true) RETURNING id`,
  // Sign-ins of its owner move the other one up to it.
  'key latest_expiry': `
    UPDATE gateway_key
    SET latest_expiry = CASE WHEN latest_expiry > $2 THEN $2 ELSE latest_expiry END,
        expires_at = LEAST(expires_at, $2), version = version + 1
    WHERE id = $1 AND COALESCE(COALESCE(latest_expiry, expires_at) > $2, true) RETURNING id`,
  'team disabled':
    'UPDATE team SET disabled = true, version = version + 1 WHERE id = $1 AND NOT disabled RETURNING id',
  'trust enabled':
    'UPDATE trust SET enabled = false, version = version + 1 WHERE id = $1 AND enabled RETURNING id',
};

const USER_OF = `SELECT 'sso:' || issuer || '#' || subject AS "userId" FROM person WHERE id = $1`;

/**
 * Applies what an entry of the audit log has ended, in the transaction that puts the entry back. What never works again is
 * ended in any case; a setting is made unless a later entry makes it.
 *
 * @param isLater whether an entry that is lost too sets it later
 * @returns false if Postgres has it already, has no such subject, or has a later setting
 */
export async function putBackEnds(
  manager: EntityManager,
  sessions: SessionRecorder,
  entry: EntryRow,
  by: Actor,
  isLater: (setting: string) => boolean,
): Promise<boolean> {
  let isChanged = await endTokens(manager, entry);
  for (const end of endsOf(entry)) {
    if (end.kind === 'final')
      isChanged = (await changes(manager, FINAL[entry.subject_type]!, [end.id])) || isChanged;
    else if (end.setting === SECRET) isChanged = (await changes(manager, END_SECRET, [end.id])) || isChanged;
    else if (!isLater(end.setting))
      isChanged = (await stop(manager, sessions, entry, end.setting, by)) || isChanged;
  }
  return isChanged;
}

/** Tokens that were issued before a rotation end with it. */
async function endTokens(
  manager: EntityManager,
  { action, subject_id: id, after }: EntryRow,
): Promise<boolean> {
  const from = after?.tokens_valid_from;
  return action === 'rotated' && typeof from === 'string' && changes(manager, END_TOKENS, [id, from]);
}

async function stop(
  manager: EntityManager,
  sessions: SessionRecorder,
  entry: EntryRow,
  setting: string,
  by: Actor,
): Promise<boolean> {
  const { subject_type: type, subject_id: id, after } = entry;
  // A request of a client is locked before its person is, and endPerson() does both.
  if (type !== 'person') await manager.query(LOCK[type]!, [id]);
  if (await isSetLater(manager, entry, setting)) return false;
  if (type === 'person') return stopPerson(manager, sessions, id, by);
  const statement = STOP[`${type} ${setting}`]!;
  return changes(manager, statement, statement.includes('$2') ? [id, after![setting]] : [id]);
}

async function stopPerson(
  manager: EntityManager,
  sessions: SessionRecorder,
  id: string,
  by: Actor,
): Promise<boolean> {
  if (!(await endPerson(manager, id, by))) return false;
  const [user] = await manager.query<{ userId: string }[]>(USER_OF, [id]);
  await endSessions(manager, sessions, user!, by);
  return true;
}

/** Whether a statement that returns the rows it has changed has changed any. */
async function changes(manager: EntityManager, statement: string, values: unknown[]): Promise<boolean> {
  // TypeORM returns the rows of an UPDATE or DELETE with their number.
  const [rows] = await manager.query<[object[], number]>(statement, values);
  return rows.length > 0;
}

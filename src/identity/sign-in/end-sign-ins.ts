import type { EntityManager } from 'typeorm';
import { recordChange } from '../../audit/record-change.js';
import type { Actor } from '../../platform/actor.js';

/**
 * Why a sign-in ended before its time, which is `over`: its client signed out; there was one more than a person may have; an administrator or
 * the person themselves ended it; the person was ended; their groups name no team any more; the OpenID provider ended it.
 */
export type EndReason = 'signed_out' | 'too_many' | 'ended' | 'person_ended' | 'no_team' | 'provider';

/**
 * Which sign-ins: one; those of a person, or only those of them that are bound to no session at the OpenID provider; those of
 * a session there.
 */
export type SignInsToEnd = { id: string } | { personId: string; withoutSid?: true } | { idpSid: string };

/** What the audit log has of the sign-in `si` of the person `p` with the key `k` of the team `t`. */
export const RECORDED_SIGN_IN = `si.id, si.person_id, p.name, t.name || '/' || k.name AS key, si.surface`;

/**
 * Locked in one order, as everything that several transactions may end at a time is.
 *
 * @param which condition of the rows
 */
const end = (which: string) => `
  WITH ending AS MATERIALIZED (
    SELECT id FROM sign_in WHERE (${which}) AND ended_at IS NULL AND expires_at > now() ORDER BY id FOR NO KEY UPDATE)
  UPDATE sign_in si SET ended_at = now(), end_reason = $1, idp_refresh = NULL
  FROM ending, person p, gateway_key k JOIN team t ON t.id = k.team_id
  WHERE si.id = ending.id AND p.id = si.person_id AND k.id = si.key_id
  RETURNING ${RECORDED_SIGN_IN}`;

/** Those that are under way are of a person whom the provider has confirmed. */
const dropRequests = (which: string) => `
  DELETE FROM device_request WHERE id IN (
    SELECT id FROM device_request WHERE (${which}) AND state IN ('pending', 'approved') ORDER BY id FOR UPDATE)`;

const END_PERSON = `
  UPDATE person SET ended_at = now(), version = version + 1 WHERE id = $1 AND ended_at IS NULL RETURNING id`;

/** A sign-in as the audit log has it. */
export interface RecordedSignIn {
  id: string;
  person_id: string;
  /** Name of the person. */
  name: string;
  key: string;
  surface: string;
}

/**
 * Ends sign-ins and records it. Their tokens stop working on every replica within a second. With a person or a session at the
 * provider, requests of clients that they have confirmed end too.
 *
 * @param which of one list are locked at once: a transaction that ends several calls it once
 */
export async function endSignIns(
  manager: EntityManager,
  which: readonly SignInsToEnd[],
  reason: EndReason,
  by: Actor,
): Promise<void> {
  const ofProvider = which.filter((some) => !('id' in some));
  if (ofProvider.length > 0) {
    const [condition, values] = conditionOf(ofProvider, []);
    await manager.query(dropRequests(condition), values);
  }
  const [condition, values] = conditionOf(which, [reason]);
  // TypeORM returns the rows of an UPDATE with their number.
  const [rows] = await manager.query<[RecordedSignIn[], number]>(end(condition), values);
  await recordEnded(manager, rows, by);
}

/** @param before values of the parameters that come before @returns a condition of the columns, and all values */
function conditionOf(which: readonly SignInsToEnd[], before: readonly string[]): [string, string[]] {
  const values = [...before];
  const parameter = (value: string) => `$${values.push(value)}`;
  const conditions = which.map((some) => {
    if ('id' in some) return `id = ${parameter(some.id)}`;
    if ('idpSid' in some) return `idp_sid = ${parameter(some.idpSid)}`;
    const ofPerson = `person_id = ${parameter(some.personId)}`;
    return some.withoutSid === true ? `${ofPerson} AND idp_sid IS NULL` : ofPerson;
  });
  // None: none ends.
  return [conditions.join(' OR ') || 'false', values];
}

/** Records the end of sign-ins, each with its ID: the end of one is final. */
export async function recordEnded(
  manager: EntityManager,
  signIns: readonly RecordedSignIn[],
  by: Actor,
): Promise<void> {
  for (const before of signIns)
    await recordChange(manager, by, { action: 'ended', type: 'sign_in', before, after: null });
}

/**
 * Ends a person: none of their tokens works, and they cannot sign in. Part of a transaction.
 *
 * @returns false if they had been ended
 */
export async function endPerson(manager: EntityManager, personId: string, by: Actor): Promise<boolean> {
  // Before the person: a request that is being confirmed is locked before its person is.
  await manager.query(dropRequests('person_id = $1'), [personId]);
  const [rows] = await manager.query<[{ id: string }[], number]>(END_PERSON, [personId]);
  await endSignIns(manager, [{ personId }], 'person_ended', by);
  return rows.length > 0;
}

import type { DataSource, EntityManager } from 'typeorm';
import { recordChange } from '../../audit/record-change.js';
import { UPDATED_NOW } from '../../request-log/row-cost.js';
import { ServiceError } from '../../errors/service-error.js';
import { isOwnSql } from '../../keys/own-key.js';
import type { Actor } from '../../platform/actor.js';
import type { PersonView } from './people.schema.js';
import { BY_BEARER } from '../oauth/issued-tokens.service.js';
import { ownerOf, userIdOf } from './person-names.js';

/** Rows of the request log that one transaction reads. Sinks and sums of usage wait for those that change any. */
const ROWS = 5_000;

/** First of all, as when a person is ended or signs in: nobody lets them in again before the transaction ends. */
const LOCK_PERSON = `
  SELECT email, subject, issuer FROM person WHERE id = $1 AND ended_at IS NOT NULL FOR NO KEY UPDATE`;

const LOCK_KEYS = 'SELECT FROM gateway_key WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE';

/** Keys of the person, also revoked ones. */
const KEYS = `SELECT k.id FROM gateway_key k WHERE k.person_id = $1 OR ${isOwnSql(2)}`;

/**
 * What changes call the person, and when they may have made them: also by the address with which a key of their sign-ins was
 * created, which they did themselves. Others may have an address before and after them, and keep what they did: the first of
 * them has it now, or has created a key with it. They may end themselves: the entry of that is the last one they make, and is
 * later than `ended_at`, which is when its transaction began. As text, because a Date has no microseconds.
 */
const NAMES = `
  SELECT n.name AS known, me.created_at::text AS since,
         COALESCE(
           (SELECT min(a.at) FROM audit_log a
            WHERE a.subject_id = me.id AND a.subject_type = 'person' AND a.action = 'ended' AND a.at >= me.ended_at),
           me.ended_at)::text AS ended,
         LEAST(
           (SELECT min(p.created_at) FROM person p WHERE 'sso:' || p.email = n.name AND p.created_at > me.created_at),
           (SELECT min(a.at) FROM gateway_key k JOIN audit_log a ON a.subject_id = k.id AND a.subject_type = 'key'
            WHERE (k.person_id <> me.id OR k.owner_id <> $4) AND a.action = 'created' AND a.actor = n.name
              AND a.at > me.created_at))::text AS until
  FROM person me, (
    SELECT unnest($3::text[]) AS name
    UNION SELECT a.actor FROM gateway_key k JOIN audit_log a ON a.subject_id = k.id AND a.subject_type = 'key'
    WHERE k.id = ANY ($2::uuid[]) AND k.origin = 'sign_in' AND a.action = 'created' AND starts_with(a.actor, 'sso:')) n
  WHERE me.id = $1 ORDER BY n.name`;

const FORGET_KEYS = `
  UPDATE gateway_key SET version = version + 1,
    name = CASE WHEN origin = 'sign_in' THEN left($2 || ' ' || right(id::text, 12), 100) ELSE name END,
    owner = CASE WHEN owner IS NULL THEN NULL ELSE $3 END
  WHERE id = ANY ($1::uuid[])`;

/** In the order in which the last use of tokens is written. */
const FORGET_TOKENS = `
  WITH tokens AS MATERIALIZED (
    SELECT id FROM gateway_key_secret WHERE key_id = ANY ($1::uuid[]) AND kind = 'sign_in' ORDER BY id FOR NO KEY UPDATE)
  UPDATE gateway_key_secret SET subject = $2 WHERE id IN (SELECT id FROM tokens)`;

/** Alerts that have the former name of a key. One that is locked is being deleted, and to wait for it could be a deadlock. */
const FORGET_ALERTS = `
  WITH alerts AS MATERIALIZED (
    SELECT e.id, k.name FROM webhook_event e JOIN gateway_key k ON k.id::text = e.data->>'key_id'
    WHERE k.id = ANY ($1::uuid[]) AND e.data->>'key' <> k.name FOR NO KEY UPDATE OF e SKIP LOCKED)
  UPDATE webhook_event e SET data = e.data || jsonb_build_object('key', alerts.name) FROM alerts WHERE e.id = alerts.id`;

const FORGET_SIGN_INS = 'UPDATE sign_in SET client_ip = NULL, program = NULL WHERE person_id = $1';

const FORGET_PERSON = 'UPDATE person SET name = $2, email = NULL, version = version + 1 WHERE id = $1';

/**
 * Entries of the person and of their sign-ins, by IDs: others may have the same name. Sign-ins are deleted after a while, so
 * the entry of their end has the ID too.
 */
const FORGET_NAME = `
  UPDATE audit_log SET subject_name = $2,
    before = jsonb_set(before, '{name}', to_jsonb($2::text), false),
    after = jsonb_set(after, '{name}', to_jsonb($2::text), false)
  WHERE subject_type = 'person' AND subject_id = $1
    OR subject_type = 'sign_in' AND subject_id IN (
      SELECT id FROM sign_in WHERE person_id = $1
      UNION SELECT subject_id FROM audit_log WHERE subject_type = 'sign_in' AND before->>'person_id' = $1::text)`;

/** With the alias for the address. */
const forgotten = (column: string) => `
    ${column} = COALESCE(regexp_replace(${column}::text, $7, $5, 'g')::jsonb, ${column})`;

/** While the name was theirs. */
const IN_TIME = `at >= $8 AND at < COALESCE($9::timestamptz, 'infinity')`;
const BY_THEM = `(actor = $3 AND ${IN_TIME} AND at <= $10)`;

/** Who did something, and what was done to the person and their keys: by one of their names, or by a token of theirs. */
const FORGET_CHANGES = `
  UPDATE audit_log SET
    actor = CASE WHEN ${BY_THEM} THEN $4 ELSE actor END,
    client_ip = CASE WHEN ${BY_THEM} OR actor = '${BY_BEARER}' THEN NULL ELSE client_ip END,
    subject_name = COALESCE(regexp_replace(subject_name, $6, $5, 'g'), subject_name),${forgotten('before')},${forgotten('after')}
  WHERE actor = $4 OR ${BY_THEM} OR subject_id = $1 OR subject_id = ANY ($2::uuid[])
    OR (subject_type = 'sign_in' AND subject_name = $5)
    OR (subject_type IN ('session', 'issued_token') AND subject_name = $3 AND ${IN_TIME})`;

/** Where the next page of the calls of a key begins. By the time alone: a key has few calls in a millisecond. */
const FIND_PAGE = `
  SELECT started_at::text AS "end" FROM request_log WHERE key_id = $1 AND started_at > $2
  ORDER BY started_at OFFSET ${ROWS - 1} LIMIT 1`;

/** By their keys alone: they may have had other addresses. Tokens of trusts, for workloads, keep their subject. */
const FORGET_ROWS = `
  UPDATE request_log SET subject = $2,
    ${UPDATED_NOW}
  WHERE key_id = $1 AND started_at > $3 AND started_at <= $4 AND starts_with(subject, 'sso:')`;

/** A row of NAMES. */
interface Name {
  known: string;
  since: string;
  until: string | null;
  ended: string;
}

/** A person who was ended, and is locked. */
interface Ended {
  /** As owners of keys are called for good. */
  userId: string;
  keyIds: string[];
  /** As changes name them today. */
  known: string[];
}

/**
 * Replaces the name and e-mail address of a person by an ID that names nobody. The ID at the OpenID provider stays, so that
 * they are not let in again as another person. The rows of their calls come first, in transactions of their own: if this is
 * broken off, it begins again.
 *
 * @throws ServiceError conflict for a person who was not ended; of one who was let in again meanwhile, rows may be changed
 */
export async function forgetPerson(dataSource: DataSource, id: string, by: Actor): Promise<void> {
  const alias = `forgotten-${id.slice(-12)}`;
  const { keyIds: ofRows } = await dataSource.transaction((manager) => lock(manager, id));
  for (const keyId of ofRows) {
    let from: string | undefined = '-infinity';
    while (from !== undefined) from = await forgetPage(dataSource, id, keyId, alias, from);
  }
  await dataSource.transaction(async (manager: EntityManager) => {
    const { userId, keyIds, known } = await lock(manager, id);
    const names = await manager.query<Name[]>(NAMES, [id, keyIds, known, userId]);
    await manager.query(LOCK_KEYS, [keyIds]);
    await manager.query(FORGET_KEYS, [keyIds, alias, `sso:${alias}`]);
    await manager.query(FORGET_ALERTS, [keyIds]);
    await manager.query(FORGET_TOKENS, [keyIds, alias]);
    await manager.query(FORGET_SIGN_INS, [id]);
    await manager.query(FORGET_PERSON, [id, alias]);
    await manager.query(FORGET_NAME, [id, alias]);
    for (const { known: name, since, until, ended } of names) {
      const address = name.startsWith('sso:sub:') ? null : name.slice('sso:'.length);
      const values = [
        ...[id, keyIds, name, `sso:${alias}`, alias],
        ...[address && patternOf(address), address && patternOf(JSON.stringify(address).slice(1, -1))],
        ...[since, until, ended],
      ];
      await manager.query(FORGET_CHANGES, values);
    }
    const change = {
      action: 'forgotten',
      type: 'person',
      before: { id, name: alias },
      after: { id, name: alias },
    };
    await recordChange(manager, by, change);
  });
}

/** @returns where the next page begins, if there is one */
function forgetPage(dataSource: DataSource, id: string, keyId: string, alias: string, from: string) {
  return dataSource.transaction(async (manager) => {
    await lockPerson(manager, id);
    const [page] = await manager.query<{ end: string }[]>(FIND_PAGE, [keyId, from]);
    await manager.query(FORGET_ROWS, [keyId, alias, from, page?.end ?? 'infinity']);
    return page?.end;
  });
}

/** Finds an address, but not as a part of another one. In JSON, an escaped line break may stand before it. */
function patternOf(address: string): string {
  const literal = address.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return `((?<=\\\\[nrt])|(?<![\\w.+'&%-]))${literal}(?![\\w-]|\\.\\w)`;
}

/** @throws ServiceError conflict for a person who was not ended */
async function lockPerson(manager: EntityManager, id: string) {
  const [person] = await manager.query<Pick<PersonView, 'email' | 'subject' | 'issuer'>[]>(LOCK_PERSON, [id]);
  if (person !== undefined) return person;
  throw ServiceError.of('conflict', 'ended_at', 'the person can still sign in; end them first');
}

/** @throws ServiceError conflict for a person who was not ended */
async function lock(manager: EntityManager, id: string): Promise<Ended> {
  const person = await lockPerson(manager, id);
  const { email, subject } = person;
  const keys = await manager.query<{ id: string }[]>(KEYS, [id, ...ownerOf(person)]);
  const known = [`sso:sub:${subject}`, ...(email === null ? [] : [`sso:${email}`])];
  return { userId: userIdOf(person), keyIds: keys.map((key) => key.id), known };
}

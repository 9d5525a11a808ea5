import type { DataSource, EntityManager } from 'typeorm';
import { recordChange } from '../../audit/record-change.js';
import { UPDATED_NOW } from '../../request-log/row-cost.js';
import { ServiceError } from '../../errors/service-error.js';
import type { Actor } from '../../platform/actor.js';
import type { PersonView } from './people.schema.js';

/** Rows of the request log that one statement changes: all of them may take longer than a statement may. */
const ROWS = 5_000;

/** First of all, as when a person is ended or signs in: nobody lets them in again until all of it is changed. */
const LOCK_PERSON = 'SELECT FROM person WHERE id = $1 AND ended_at IS NOT NULL FOR NO KEY UPDATE';

/** After the rows: the last use of other keys is written together with theirs. */
const LOCK_KEYS = 'SELECT FROM gateway_key WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE';

/** Keys of the person, also revoked ones. */
const KEYS = `SELECT id FROM gateway_key WHERE person_id = $1 OR owner_id = $2`;

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

const FORGET_SIGN_INS = 'UPDATE sign_in SET client_ip = NULL, program = NULL WHERE person_id = $1';

const FORGET_PERSON = 'UPDATE person SET name = $2, email = NULL, version = version + 1 WHERE id = $1';

/** Without the address, and with the alias for each value that is the name: as a part of another text, it may be anything. */
const forgotten = (column: string) => `
    ${column} = replace(CASE WHEN $6 = '' THEN ${column}::text ELSE replace(${column}::text, $6, $5) END,
      ': ' || to_jsonb($7::text)::text, ': ' || to_jsonb($5::text)::text)::jsonb`;

/** Who did something, and what was done to the person and their keys. */
const FORGET_CHANGES = `
  UPDATE audit_log SET
    actor = CASE WHEN actor = ANY ($3::text[]) THEN $4 ELSE actor END,
    client_ip = CASE WHEN actor = ANY ($3::text[]) THEN NULL ELSE client_ip END,
    subject_name = CASE WHEN subject_name = $7 THEN $5 WHEN $6 = '' THEN subject_name ELSE replace(subject_name, $6, $5) END,${forgotten('before')},${forgotten('after')}
  WHERE actor = ANY ($3::text[]) OR subject_id = $1 OR subject_id = ANY ($2::uuid[])
    OR (subject_type IN ('session', 'sign_in', 'issued_token') AND (subject_name = ANY ($3::text[]) OR subject_name = $7))`;

const FORGET_ROWS = `
  UPDATE request_log SET subject = $2,
    ${UPDATED_NOW}
  WHERE (started_at, id) IN (
    SELECT started_at, id FROM request_log WHERE key_id = ANY ($1::uuid[]) AND subject = ANY ($3::text[]) LIMIT ${ROWS})`;

/**
 * Replaces the name and e-mail address of a person by an ID that names nobody. The ID at the OpenID provider stays, so that
 * they are not let in again as another person. All of it is one transaction.
 *
 * @throws ServiceError conflict for a person who was not ended, or was let in again meanwhile
 */
export async function forgetPerson(dataSource: DataSource, person: PersonView, by: Actor): Promise<void> {
  const { id, email, name, subject, issuer } = person;
  if (person.ended_at === null) throw notEnded();
  const alias = `forgotten-${id.slice(-12)}`;
  const known = [`sso:sub:${subject}`, ...(email === null ? [] : [`sso:${email}`])];
  await dataSource.transaction(async (manager: EntityManager) => {
    const locked = await manager.query<object[]>(LOCK_PERSON, [id]);
    if (locked.length === 0) throw notEnded();
    const keys = await manager.query<{ id: string }[]>(KEYS, [id, `sso:${issuer}#${subject}`]);
    const keyIds = keys.map((key) => key.id);
    for (let changed = ROWS; changed === ROWS;) {
      // TypeORM returns the rows of an UPDATE with their number.
      const [, count] = await manager.query<[object[], number]>(FORGET_ROWS, [keyIds, alias, known]);
      changed = count;
    }
    await manager.query(LOCK_KEYS, [keyIds]);
    await manager.query(FORGET_KEYS, [keyIds, alias, `sso:${alias}`]);
    await manager.query(FORGET_TOKENS, [keyIds, alias]);
    await manager.query(FORGET_SIGN_INS, [id]);
    await manager.query(FORGET_PERSON, [id, alias]);
    await manager.query(FORGET_CHANGES, [id, keyIds, known, `sso:${alias}`, alias, email ?? '', name]);
    const change = {
      action: 'forgotten',
      type: 'person',
      before: { id, name: alias },
      after: { id, name: alias },
    };
    await recordChange(manager, by, change);
  });
}

function notEnded(): ServiceError {
  return ServiceError.of('conflict', 'ended_at', 'the person can still sign in; end them first');
}

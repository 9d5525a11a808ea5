import type { EntityManager } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';

/** By their IDs, which begin with the time, because only those are indexed. */
const COUNT = `
  SELECT count(*)::int AS count FROM audit_log
  WHERE actor = $1 AND subject_type NOT IN ('session', 'sign_in', 'issued_token') AND id >= rpad(
    lpad(to_hex((extract(epoch FROM now() - interval '1 hour') * 1000)::bigint), 12, '0'), 32, '0')::uuid`;

/** Waits for other changes of the actor, so that all of them are counted. */
const LOCK_ACTOR = 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))';

/** Counts the changes that an actor has made in the last hour. Signing in and out is none. */
async function changesInLastHour(manager: EntityManager, actor: string): Promise<number> {
  const [{ count }] = await manager.query<[{ count: number }]>(COUNT, [actor]);
  return count;
}

/** @param most changes in an hour @throws ServiceError conflict for one more */
export async function mustChangeLess(manager: EntityManager, actor: string, most: number): Promise<void> {
  await manager.query(LOCK_ACTOR, [`own keys of ${actor}`]);
  const count = await changesInLastHour(manager, actor);
  if (count < most) return;
  throw new ServiceError(
    'conflict',
    `You have made ${count} changes in the last hour, of at most ${most}. Try again later. You can still revoke keys.`,
  );
}

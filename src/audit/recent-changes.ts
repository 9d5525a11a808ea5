import type { EntityManager } from 'typeorm';

/** By their IDs, which begin with the time, because only those are indexed. */
const COUNT = `
  SELECT count(*)::int AS count FROM audit_log
  WHERE actor = $1 AND subject_type <> 'session' AND id >= rpad(
    lpad(to_hex((extract(epoch FROM now() - interval '1 hour') * 1000)::bigint), 12, '0'), 32, '0')::uuid`;

/** Counts the changes that an actor has made in the last hour. Signing in is none. */
export async function changesInLastHour(manager: EntityManager, actor: string): Promise<number> {
  const [{ count }] = await manager.query<[{ count: number }]>(COUNT, [actor]);
  return count;
}

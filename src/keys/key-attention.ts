import type { EntityManager } from 'typeorm';
import type { Scope } from '../admin/access/access.js';
import { KEY_STATUS_SQL, LAST_EXPIRY_SQL } from './key-view.js';

/** A key that is about to expire. */
export const EXPIRING_DAYS = 7;
/** A key that nobody has used for so long may be forgotten. */
export const UNUSED_DAYS = 90;

/** Keys for which somebody should do something, some of them by name. */
export interface KeyGroup {
  count: number;
  names: { id: string; name: string }[];
}
/** Active keys that expire soon, that nobody uses, and whose old secret is still used after a rotation. */
export interface KeyAttention {
  expiring: KeyGroup;
  unused: KeyGroup;
  old_secret: KeyGroup;
}

/** The old secret was used after the rotation, within the last day. */
const OLD_SECRET_IS_USED = `s.old_used_at > GREATEST(s.rotated_at, now() - interval '1 day')`;

/** In an hour, an application is told of its new secret. */
const ROTATED = `s.rotated_at < now() - interval '1 hour'`;

const FIND = `
  WITH keys AS (
    SELECT k.id, k.name, t.name AS team, ${LAST_EXPIRY_SQL} AS expires_at, COALESCE(GREATEST(s.last_used_at, k.tokens_used_at), k.created_at) AS used_at,
           ${LAST_EXPIRY_SQL} <= now() + make_interval(days => ${EXPIRING_DAYS}) AS is_expiring,
           COALESCE(GREATEST(s.last_used_at, k.tokens_used_at), k.created_at) < now() - make_interval(days => ${UNUSED_DAYS}) AS is_unused,
           COALESCE(${OLD_SECRET_IS_USED} AND ${ROTATED}, false) AS has_old_secret
    FROM gateway_key k
    JOIN team t ON t.id = k.team_id
    LEFT JOIN (
      SELECT key_id, max(last_used_at) AS last_used_at, max(created_at) AS rotated_at,
             max(last_used_at) FILTER (WHERE expires_at > now()) AS old_used_at
      FROM gateway_key_secret WHERE kind = 'key' GROUP BY key_id) s ON s.key_id = k.id
    WHERE ($1::uuid[] IS NULL OR k.team_id = ANY ($1)) AND ${KEY_STATUS_SQL} = 'active')
  SELECT kind, count(*)::int AS count,
         (array_agg(json_build_object('id', id, 'name', team || '/' || name) ORDER BY place, id))[1:$2] AS names
  FROM keys CROSS JOIN LATERAL (VALUES
    ('expiring', is_expiring, expires_at), ('unused', is_unused, used_at), ('old_secret', has_old_secret, used_at)
  ) AS g (kind, applies, place)
  WHERE applies GROUP BY kind`;

const NONE: KeyGroup = { count: 0, names: [] };

/** @param shown how many of each group are named */
export async function keyAttention(
  manager: EntityManager,
  scope: Scope,
  shown: number,
): Promise<KeyAttention> {
  const rows = await manager.query<(KeyGroup & { kind: keyof KeyAttention })[]>(FIND, [scope, shown]);
  const found = { expiring: NONE, unused: NONE, old_secret: NONE };
  for (const { kind, ...group } of rows) found[kind] = group;
  return found;
}

import type { Access } from '../admin/access/access.js';

/**
 * Whether the key `k` is the member's own, with the values of ownerValues() from `$first` on. It belongs to an ID, because
 * names are given again: to another token after a revocation, to another person with an e-mail address. Keys that an earlier
 * version created have only the name; that of a token counts for keys since the token was created.
 */
export function isOwnSql(first: number): string {
  const [id, name] = [`$${first}`, `$${first + 1}`];
  return `
    CASE WHEN k.owner_id IS NOT NULL THEN k.owner_id = ${id}
         WHEN k.owner IS DISTINCT FROM ${name} THEN false
         WHEN ${id} LIKE 'token:%' THEN
           COALESCE(k.created_at >= (SELECT created_at FROM admin_token WHERE 'token:' || id = ${id}), false)
         ELSE true END`;
}

/** Values of isOwnSql(): ID and name. */
export function ownerValues({ actor, userId }: Access): [string, string] {
  // An earlier version called users without a verified e-mail address by their ID alone, as if it were an address.
  const [, sub] = /^sso:sub:([^@]*)$/.exec(actor.name) ?? [];
  return [userId, sub === undefined ? actor.name : `sso:${sub}`];
}

/**
 * Providers that the key `k` of the team `t` may use; null for all. A member's own key stays within those that the team
 * lets its members use, also if these have changed since.
 */
export const GRANTED_PROVIDERS = `
  CASE WHEN k.owner IS NULL OR jsonb_typeof(t.self_service->'providers') IS DISTINCT FROM 'array' THEN k.providers
       ELSE ARRAY(SELECT value FROM jsonb_array_elements_text(t.self_service->'providers')
                  WHERE k.providers IS NULL OR value = ANY (k.providers)) END`;

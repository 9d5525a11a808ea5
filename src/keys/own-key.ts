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

/** Whether a user was ended; their end waits until the transaction is over, and then sees what it has created. */
export const IS_ENDED = `
  SELECT ended_at IS NOT NULL AS ended FROM person
  WHERE issuer = substr(split_part($1, '#', 1), 5) AND subject = substr($1, strpos($1, '#') + 1) FOR SHARE`;

/** Values of isOwnSql(): ID and name. */
export function ownerValues({ actor, userId }: Pick<Access, 'actor' | 'userId'>): [string, string] {
  // An earlier version called users without a verified e-mail address by their ID alone, as if it were an address.
  const [, sub] = /^sso:sub:([^@]*)$/.exec(actor.name) ?? [];
  return [userId, sub === undefined ? actor.name : `sso:${sub}`];
}

/**
 * The lists of names that limit the providers of the key `k` of the team `t`: its own, that of the team and, of a member's
 * own key, those that the team lets its members use. All of them count, also if they have changed since it was created.
 */
export const PROVIDER_LISTS = `
  k.providers, t.providers AS team_providers,
  CASE WHEN k.owner IS NOT NULL AND jsonb_typeof(t.self_service->'providers') = 'array'
       THEN t.self_service->'providers' END AS member_providers`;

export interface ProviderLists {
  providers: string[] | null;
  team_providers: string[] | null;
  member_providers: string[] | null;
}

/** The names of providers and routes that are on all lists; null: there is no list. */
export function grantedProviders({
  providers,
  team_providers,
  member_providers,
}: ProviderLists): string[] | null {
  return [providers, team_providers, member_providers].reduce((some, list) =>
    some === null || list === null ? (some ?? list) : some.filter((name) => list.includes(name)),
  );
}

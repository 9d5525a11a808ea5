import { type RuleValues, rulesSql, shownLimits } from '../limit-rules/stored-rules.js';
import { pick } from '../platform/pick.js';
import { ANNOTATIONS, type Annotations, annotationsSql, KEY_OWNER } from '../teams/annotations.js';
import { SHOWN_SETTINGS } from './gateway-key.entity.js';
import type { KeyView } from './keys.schema.js';

/** A key row. */
export type KeyRow = Pick<
  KeyView,
  | (typeof SHOWN_SETTINGS)[number]
  | keyof Annotations
  | (
      | 'id'
      | 'name'
      | 'team'
      | 'team_id'
      | 'prefix'
      | 'cache'
      | 'self_service'
      | 'owner_id'
      | 'origin'
      | 'version'
    )
> & {
  created_at: Date;
  previous_secret_expires_at: Date | null;
  expires_at: Date | null;
  latest_expiry: Date | null;
  last_used_at: Date | null;
  revoked_at: Date | null;
  rules: RuleValues[] | null;
};

/**
 * The common start of all key queries; `k` is the key, `t` its team, `s` its secrets.
 *
 * @param more columns before the others, each with a comma
 */
export const selectKeys = (more = '') => `
  SELECT ${more} k.id, k.name, t.name AS team, k.team_id, s.prefix, k.created_at, k.expires_at, k.latest_expiry,
         s.last_used_at,
         CASE WHEN k.revoked_at IS NULL THEN s.previous_secret_expires_at END AS previous_secret_expires_at,
         k.revoked_at, ${SHOWN_SETTINGS.map((name) => `k.${name}`).join(', ')}, ${annotationsSql('k', KEY_OWNER)}, k.cache,
         k.owner IS NOT NULL AS self_service, k.owner_id, k.origin, k.version,
         (${rulesSql('k.id')}) AS rules
  FROM gateway_key k
  JOIN team t ON t.id = k.team_id
  CROSS JOIN LATERAL (
    SELECT (array_agg(prefix ORDER BY id DESC))[1] AS prefix, GREATEST(max(last_used_at), k.tokens_used_at) AS last_used_at,
           max(expires_at) FILTER (WHERE expires_at > now()) AS previous_secret_expires_at
    FROM gateway_key_secret WHERE key_id = k.id AND kind = 'key'
  ) s`;

/** One key by its id. */
export const FIND_KEY = `${selectKeys()} WHERE k.id = $1`;

/** The KeyStatus of a row, the most severe first. A disabled team disables its keys. */
export const KEY_STATUS_SQL = `
  CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
       WHEN k.expires_at <= now() THEN 'expired'
       WHEN k.disabled OR t.disabled THEN 'disabled'
       ELSE 'active' END`;

/** When a key stops working for good: sign-ins of its owner do not move it. One that has stopped has stopped. */
export const LAST_EXPIRY_SQL = `
  CASE WHEN k.expires_at > now() THEN COALESCE(k.latest_expiry, k.expires_at) ELSE k.expires_at END`;

/** The name of a key is unique only within its team. */
export function fullName({ team, name }: Pick<KeyView, 'team' | 'name'>): string {
  return `${team}/${name}`;
}

/** Lists each field, so that a new column is not shown by accident. */
export function keyView(row: KeyRow): KeyView {
  return {
    id: row.id,
    name: row.name,
    team: row.team,
    team_id: row.team_id,
    prefix: row.prefix,
    created_at: row.created_at.toISOString(),
    previous_secret_expires_at: row.previous_secret_expires_at?.toISOString() ?? null,
    expires_at: row.expires_at?.toISOString() ?? null,
    latest_expiry: row.latest_expiry?.toISOString() ?? null,
    last_used_at: row.last_used_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
    ...pick(row, SHOWN_SETTINGS),
    // In one order: jsonb has one of its own.
    cache: row.cache && { ttl_seconds: row.cache.ttl_seconds, shared: row.cache.shared },
    ...shownLimits(row.rules, 'key'),
    ...pick(row, ANNOTATIONS),
    self_service: row.self_service,
    owner_id: row.owner_id,
    origin: row.origin,
    version: row.version,
  };
}

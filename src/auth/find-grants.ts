import { countOfChanges } from '../database/change-counter.js';
import type { OnDisconnect } from '../providers/on-disconnect.js';
import type { StreamUsage } from '../teams/model-rules.js';
import type { Grant } from './caller.js';
import type { KeyCache } from '../keys/key-cache-settings.js';
import { GRANTED_PROVIDERS } from '../keys/own-key.js';
import { GRANTED_SETTINGS, type GrantedSettings } from '../keys/gateway-key.entity.js';
import type { SecretKind } from '../keys/gateway-key-secret.entity.js';
import { pick } from '../platform/pick.js';

/** Whether the secret `s` of the key `k` has not ended with what it was issued by. A static secret ends with its key alone. */
const PARENTS_ARE_ENABLED = `(s.kind = 'key' OR (
           COALESCE(s.created_at > k.tokens_valid_from, true) AND (s.kind <> 'exchange' OR tr.enabled)))`;

/**
 * One statement for one key and for many; digests are bind parameters only. A secret that has expired by Postgres's clock
 * is not enabled: otherwise one that a rotation ended at once would work for as long as the local clock is behind.
 */
export const FIND_GRANTS = `
  SELECT encode(s.digest, 'hex') AS digest, s.id AS secret_id, s.kind, s.subject, s.trust_id, k.id AS key_id, k.team_id, ${GRANTED_PROVIDERS} AS providers,
         ${GRANTED_SETTINGS.map((name) => `k.${name}`).join(', ')}, k.models, t.models AS team_models, k.stream_usage, t.stream_usage AS team_stream_usage,
         k.cache, k.on_disconnect,
         LEAST(k.expires_at, s.expires_at) AS expires_at,
         k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
           AND COALESCE(LEAST(k.expires_at, s.expires_at) > now(), true)
           AND ${PARENTS_ARE_ENABLED} AS enabled,
         (${countOfChanges('limits')}) AS limits_version
  FROM gateway_key_secret s
  JOIN gateway_key k ON k.id = s.key_id
  JOIN team t ON t.id = k.team_id
  LEFT JOIN trust tr ON tr.id = s.trust_id
  WHERE s.digest = ANY ($1)`;

export interface GrantRow extends GrantedSettings {
  digest: string;
  secret_id: string;
  kind: SecretKind;
  subject: string | null;
  trust_id: string | null;
  key_id: string;
  team_id: string;
  providers: string[] | null;
  models: string[] | null;
  team_models: string[] | null;
  stream_usage: StreamUsage;
  team_stream_usage: StreamUsage;
  cache: KeyCache | null;
  on_disconnect: OnDisconnect | null;
  expires_at: Date | null;
  enabled: boolean;
  /** The limits of the key are at least those of this version. */
  limits_version: string;
}

/** @param rows of FIND_GRANTS @returns grants by hex digest */
export function grantsOf(rows: readonly GrantRow[]): Map<string, Grant> {
  return new Map(
    rows.map((row) => [
      row.digest,
      {
        keyId: row.key_id,
        secretId: row.secret_id,
        kind: row.kind,
        subject: row.subject,
        parents: row.trust_id === null ? NONE : [row.trust_id],
        teamId: row.team_id,
        expiresAt: row.expires_at?.getTime() ?? Infinity,
        enabled: row.enabled,
        providers: row.providers,
        ...pick(row, GRANTED_SETTINGS),
        models: lists(row.models, row.team_models),
        streamUsage: rules(row.stream_usage, row.team_stream_usage),
        cache: row.cache && { ttlSeconds: row.cache.ttl_seconds, shared: row.cache.shared },
        onDisconnect: row.on_disconnect,
      },
    ]),
  );
}

/** The same array for all keys without rules, and for all static secrets: most keys. */
const NONE: readonly never[] = [];

function lists(...models: (string[] | null)[]): Grant['models'] {
  return models.some((list) => list !== null) ? models.filter((list) => list !== null) : NONE;
}

function rules(...all: StreamUsage[]): Grant['streamUsage'] {
  return all.some((rule) => rule !== 'as_sent') ? all.filter((rule) => rule !== 'as_sent') : NONE;
}

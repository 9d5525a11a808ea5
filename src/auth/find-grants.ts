import { countOfChanges } from '../database/change-counter.js';
import { type KnownEnds, SERVER_STARTED } from '../database/known-ends/known-ends.js';
import type { OnDisconnect } from '../providers/on-disconnect.js';
import type { StreamUsage } from '../teams/model-rules.js';
import type { Grant } from './caller.js';
import type { KeyCache } from '../keys/key-cache-settings.js';
import { grantedProviders, PROVIDER_LISTS, type ProviderLists } from '../keys/own-key.js';
import { GRANTED_SETTINGS, type GrantedSettings } from '../keys/gateway-key.entity.js';
import { IS_ENABLED, SECRETS } from '../keys/live-secrets.js';
import type { SecretKind } from '../keys/gateway-key-secret.entity.js';
import { pick } from '../platform/pick.js';

/**
 * One statement for one key and for many; digests are bind parameters only. A secret that has expired by Postgres's clock
 * is not enabled: otherwise one that a rotation ended at once would work for as long as the local clock is behind.
 */
export const FIND_GRANTS = `
  SELECT encode(s.digest, 'hex') AS digest, s.id AS secret_id, s.kind, s.subject, s.trust_id, s.sign_in_id, si.person_id, k.id AS key_id, k.team_id,${PROVIDER_LISTS}, t.default_provider,
         ${GRANTED_SETTINGS.map((name) => `k.${name}`).join(', ')}, k.models, t.models AS team_models, k.stream_usage, t.stream_usage AS team_stream_usage,
         k.cache, k.on_disconnect,
         LEAST(k.expires_at, s.expires_at) AS expires_at,
         ${IS_ENABLED} AS enabled, ${SERVER_STARTED} AS server,
         (${countOfChanges('limits')}) AS limits_version
  FROM ${SECRETS}
  WHERE s.digest = ANY ($1)`;

export interface GrantRow extends GrantedSettings, ProviderLists {
  digest: string;
  secret_id: string;
  kind: SecretKind;
  subject: string | null;
  trust_id: string | null;
  sign_in_id: string | null;
  person_id: string | null;
  key_id: string;
  team_id: string;
  default_provider: string | null;
  models: string[] | null;
  team_models: string[] | null;
  stream_usage: StreamUsage;
  team_stream_usage: StreamUsage;
  cache: KeyCache | null;
  on_disconnect: OnDisconnect | null;
  expires_at: Date | null;
  enabled: boolean;
  /** That the row was read from. */
  server: string;
  /** The limits of the key are at least those of this version. */
  limits_version: string;
}

/** @param rows of FIND_GRANTS @param ends of which Postgres may not have all @returns grants by hex digest */
export function grantsOf(rows: readonly GrantRow[], ends: KnownEnds): Map<string, Grant> {
  return new Map(
    rows.map((row) => [
      row.digest,
      {
        keyId: row.key_id,
        secretId: row.secret_id,
        kind: row.kind,
        subject: row.subject,
        parents: parentsOf(row),
        teamId: row.team_id,
        expiresAt: row.expires_at?.getTime() ?? Infinity,
        enabled: row.enabled && !ends.reject(dependenciesOf(row), row.server),
        providers: grantedProviders(row),
        defaultProvider: row.default_provider,
        ...pick(row, GRANTED_SETTINGS),
        models: lists(row.models, row.team_models),
        streamUsage: rules(row.stream_usage, row.team_stream_usage),
        cache: row.cache && { ttlSeconds: row.cache.ttl_seconds, shared: row.cache.shared },
        onDisconnect: row.on_disconnect,
      },
    ]),
  );
}

function dependenciesOf(row: GrantRow): string[] {
  return [row.secret_id, row.key_id, row.team_id, ...parentsOf(row)];
}

/** The same array for all keys without rules, and for all static secrets: most keys. */
const NONE: readonly never[] = [];

function parentsOf({ trust_id, sign_in_id, person_id }: GrantRow): readonly string[] {
  if (trust_id !== null) return [trust_id];
  return sign_in_id === null ? NONE : [sign_in_id, person_id!];
}

function lists(...models: (string[] | null)[]): Grant['models'] {
  return models.some((list) => list !== null) ? models.filter((list) => list !== null) : NONE;
}

function rules(...all: StreamUsage[]): Grant['streamUsage'] {
  return all.some((rule) => rule !== 'as_sent') ? all.filter((rule) => rule !== 'as_sent') : NONE;
}

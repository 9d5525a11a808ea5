import type { Grant } from './caller.js';
import type { EndpointRule, IdempotencyMode } from '../keys/gateway-key.entity.js';

/**
 * One statement for one key and for many; digests are bind parameters only. A secret that has expired by Postgres's clock
 * is not enabled: otherwise one that a rotation ended at once would work for as long as the local clock is behind.
 */
export const FIND_GRANTS = `
  SELECT encode(s.digest, 'hex') AS digest, s.id AS secret_id, k.id AS key_id, k.team_id, k.providers, k.endpoints,
         k.idempotency, LEAST(k.expires_at, s.expires_at) AS expires_at,
         k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
           AND COALESCE(LEAST(k.expires_at, s.expires_at) > now(), true) AS enabled
  FROM gateway_key_secret s
  JOIN gateway_key k ON k.id = s.key_id
  JOIN team t ON t.id = k.team_id
  WHERE s.digest = ANY ($1)`;

export interface GrantRow {
  digest: string;
  secret_id: string;
  key_id: string;
  team_id: string;
  providers: string[] | null;
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
  expires_at: Date | null;
  enabled: boolean;
}

/** @param rows of FIND_GRANTS @returns grants by hex digest */
export function grantsOf(rows: readonly GrantRow[]): Map<string, Grant> {
  return new Map(
    rows.map((row) => [
      row.digest,
      {
        keyId: row.key_id,
        secretId: row.secret_id,
        teamId: row.team_id,
        expiresAt: row.expires_at?.getTime() ?? Infinity,
        enabled: row.enabled,
        providers: row.providers,
        endpoints: row.endpoints,
        idempotency: row.idempotency,
      },
    ]),
  );
}

import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { Access } from '../admin/access/access.js';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import type { ModelRules } from '../teams/model-rules.js';
import type { EndpointRule, IdempotencyMode } from './gateway-key.entity.js';
import type { KeyCache } from './key-cache-settings.js';
import { digestKey, generateKey, shownPrefix } from './key-secret.js';
import { FIND_KEY, fullName, type KeyRow, keyView } from './key-view.js';
import type { KeyView } from './keys.schema.js';

export interface KeyGrant extends Partial<ModelRules> {
  name: string;
  /** null if the key never expires. */
  expiresAt: Date | null;
  /** Names of providers; null for all. */
  providers: readonly string[] | null;
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
  websockets?: boolean;
  cache?: KeyCache | null;
  /** Member of the team whose own it is; absent for other keys. */
  owner?: Access;
}

/** A key with its secret, which is not stored and cannot be read later. */
export interface IssuedKey {
  key: KeyView;
  secret: string;
}

export interface RotatedKey extends IssuedKey {
  /** First characters of older secrets whose grace the rotation ended. */
  ended: string[];
}

const INSERT_KEY = `
  INSERT INTO gateway_key (id, team_id, name, expires_at, providers, endpoints, idempotency, models, stream_usage,
                           websockets, cache, owner, owner_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`;

const INSERT_SECRET = `
  INSERT INTO gateway_key_secret (id, key_id, digest, prefix) VALUES ($1, $2, decode($3, 'hex'), $4)`;

/**
 * Inserts a key with its first secret and an audit entry. `manager` must belong to a transaction: otherwise an error could
 * leave a key without a secret.
 *
 * @param saveLimits stores the limits of the new key; undefined: it has none
 */
export async function insertKey(
  manager: EntityManager,
  teamId: string,
  grant: KeyGrant,
  by: Actor,
  saveLimits?: (id: string) => Promise<void>,
): Promise<IssuedKey> {
  const id = uuidv7();
  await manager.query(INSERT_KEY, [
    id,
    teamId,
    grant.name,
    grant.expiresAt,
    grant.providers,
    grant.endpoints,
    grant.idempotency,
    grant.models ?? null,
    grant.stream_usage ?? 'as_sent',
    grant.websockets ?? false,
    grant.cache ?? null,
    grant.owner?.actor.name ?? null,
    grant.owner?.userId ?? null,
  ]);
  const secret = await insertSecret(manager, id);
  await saveLimits?.(id);
  const [row] = await manager.query<[KeyRow]>(FIND_KEY, [id]);
  const key = keyView(row);
  await recordChange(manager, by, {
    ...{ action: 'created', type: 'key', name: fullName(key) },
    ...{ before: null, after: key },
  });
  return { key, secret };
}

/** Adds a secret to a key. @returns the secret, which is not stored */
export async function insertSecret(manager: EntityManager, keyId: string): Promise<string> {
  const secret = generateKey();
  await manager.query(INSERT_SECRET, [uuidv7(), keyId, digestKey(secret), shownPrefix(secret)]);
  return secret;
}

import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import type { EndpointRule, IdempotencyMode } from './gateway-key.entity.js';
import { digestKey, mintKey, shownPrefix } from './key-secret.js';
import { FIND_KEY, type KeyRow, keyView } from './key-view.js';
import type { KeyView } from './keys.schema.js';

export interface KeyGrant {
  name: string;
  /** null: never */
  expiresAt: Date | null;
  /** Names; null: all. */
  providers: readonly string[] | null;
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
}

/** The only moment at which a secret exists outside its holder's hands. */
export interface IssuedKey {
  key: KeyView;
  secret: string;
}

const INSERT_KEY = `
  INSERT INTO gateway_key (id, team_id, name, expires_at, providers, endpoints, idempotency)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const INSERT_SECRET = `
  INSERT INTO gateway_key_secret (id, key_id, digest, prefix) VALUES ($1, $2, decode($3, 'hex'), $4)`;

/**
 * Adds a key with its first secret and remembers who did; `manager` must be that of a transaction, or the key may be left
 * without one.
 */
export async function insertKey(
  manager: EntityManager,
  teamId: string,
  grant: KeyGrant,
  by: Actor,
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
  ]);
  const secret = await insertSecret(manager, id);
  const [row] = await manager.query<[KeyRow]>(FIND_KEY, [id]);
  const key = keyView(row);
  await recordChange(manager, by, { action: 'created', type: 'key', before: null, after: key });
  return { key, secret };
}

/** Gives a key one more secret. @returns the secret, which exists nowhere else */
export async function insertSecret(manager: EntityManager, keyId: string): Promise<string> {
  const secret = mintKey();
  await manager.query(INSERT_SECRET, [uuidv7(), keyId, digestKey(secret), shownPrefix(secret)]);
  return secret;
}

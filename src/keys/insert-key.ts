import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { EndpointRule, IdempotencyMode } from './gateway-key.entity.js';
import { digestKey, mintKey, shownPrefix } from './key-secret.js';

export interface KeyGrant {
  name: string;
  /** null: never */
  expiresAt: Date | null;
  /** Names; null: all. */
  providers: readonly string[] | null;
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
}

const INSERT_TEAM = 'INSERT INTO team (id, name) VALUES ($1, $2)';

const INSERT_KEY = `
  INSERT INTO gateway_key (id, team_id, name, expires_at, providers, endpoints, idempotency)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const INSERT_SECRET = `
  INSERT INTO gateway_key_secret (id, key_id, digest, prefix) VALUES ($1, $2, decode($3, 'hex'), $4)`;

/** @returns the new team's id */
export async function insertTeam(manager: EntityManager, name: string): Promise<string> {
  const id = uuidv7();
  await manager.query(INSERT_TEAM, [id, name]);
  return id;
}

/** Adds a key with its first secret; `manager` must be that of a transaction, or the key may be left without one. */
export async function insertKey(
  manager: EntityManager,
  teamId: string,
  grant: KeyGrant,
): Promise<{ id: string; secret: string }> {
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
  return { id, secret: await insertSecret(manager, id) };
}

/** Gives a key one more secret. @returns the secret, which exists nowhere else */
export async function insertSecret(manager: EntityManager, keyId: string): Promise<string> {
  const secret = mintKey();
  await manager.query(INSERT_SECRET, [uuidv7(), keyId, digestKey(secret), shownPrefix(secret)]);
  return secret;
}

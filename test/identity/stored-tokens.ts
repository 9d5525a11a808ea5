import { randomUUID } from 'node:crypto';
import { digestKey, generateKey, shownPrefix } from '../../src/keys/key-secret.js';
import type { TestDatabase } from '../support/database.js';

/** Stores a trust of a key, with conditions that nothing meets. @returns its ID */
export async function storeTrust(database: TestDatabase, keyId: string): Promise<string> {
  const id = randomUUID();
  await database.query(
    `INSERT INTO trust (id, name, key_id, preset, issuer, audience, claims, token_minutes, longest_jwt_minutes, max_live)
     VALUES ($1, $2, $3, 'oidc', 'https://issuer.invalid', 'test', '{"sub": ["none"]}', 60, 120, 1000)`,
    [id, `trust-${id}`, keyId],
  );
  return id;
}

/** Stores tokens of a trust, as they are issued. @returns the tokens */
export async function storeTokens(
  database: TestDatabase,
  { keyId, trustId, count = 1 }: { keyId: string; trustId: string; count?: number },
  expires = `now() + interval '1 hour'`,
): Promise<string[]> {
  const tokens = Array.from({ length: count }, generateKey);
  await database.query(
    `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, trust_id)
     SELECT gen_random_uuid(), $1, decode(digest, 'hex'), prefix, ${expires}, 'exchange', 'job', $2
     FROM unnest($3::text[], $4::text[]) AS token (digest, prefix)`,
    [keyId, trustId, tokens.map(digestKey), tokens.map(shownPrefix)],
  );
  return tokens;
}

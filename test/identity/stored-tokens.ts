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

/** Stores a sign-in of a person of its own with this key, and a token of it, as it is issued. */
export async function storeSignInToken(
  database: TestDatabase,
  keyId: string,
): Promise<{ token: string; signInId: string }> {
  const token = generateKey();
  const [signIn] = await database.query<{ id: string }>(
    `WITH p AS (
       INSERT INTO person (id, issuer, subject, name, email, last_sign_in_at)
       VALUES (gen_random_uuid(), 'https://issuer.invalid', $1, 'Jane', 'jane@example.com', now()) RETURNING id)
     INSERT INTO sign_in (id, person_id, key_id, surface, expires_at)
     SELECT gen_random_uuid(), p.id, $1::uuid, 'claude_code', now() + interval '30 days' FROM p RETURNING id`,
    [keyId],
  );
  await database.query(
    `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, sign_in_id)
     VALUES (gen_random_uuid(), $1, decode($2, 'hex'), $3, now() + interval '1 hour', 'sign_in', 'sso:jane@example.com', $4)`,
    [keyId, digestKey(token), shownPrefix(token), signIn!.id],
  );
  return { token, signInId: signIn!.id };
}

// Trusts by the admin API, and tokens as they are issued, but straight into the database: issuing them takes minutes.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { digestKey, generateKey, shownPrefix } from '../../dist/src/keys/key-secret.js';

const BATCH = 10_000;

/** Keys without a secret, each with a trust. @returns IDs, names and versions */
export async function createTrusts({ admin }, { count, identities, maxLive }) {
  const made = [];
  for (let i = 0; i < count; i++) {
    const name = `job-${i}`;
    const { id: keyId } = await admin('POST', '/keys', { team: 'default', name, secret: false });
    const trust = { name, key: `default/${name}`, max_live: maxLive, ...identities.terms };
    const { id, version } = await admin('POST', '/trusts', trust);
    made.push({ id, name, keyId, version });
  }
  return made;
}

/** Tokens that nobody has, of all trusts alike, the last use of each within the hour. */
export async function insertTokens(url, trusts, count) {
  await withClient(url, async (client) => {
    for (let done = 0; done < count; done += BATCH)
      await client.query(
        `INSERT INTO gateway_key_secret
           (id, key_id, digest, prefix, created_at, expires_at, kind, subject, trust_id, last_used_at)
         SELECT gen_random_uuid(), t.key_id, sha256(gen_random_uuid()::text::bytea), 'ptn_00000000',
                now(), now() + interval '6 hours', 'exchange', 'repo:acme/api:ref:refs/heads/main', t.id,
                now() - random() * interval '1 hour'
         FROM generate_series(1, $3) n
         JOIN unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY t (id, key_id, at) ON t.at = 1 + n % cardinality($1)`,
        [trusts.map(({ id }) => id), trusts.map(({ keyId }) => keyId), Math.min(BATCH, count - done)],
      );
    await client.query('VACUUM ANALYZE gateway_key_secret');
  });
}

/** Tokens of one trust, none of them used yet. @returns the tokens */
export async function insertKnownTokens(url, { id, keyId }, count) {
  const tokens = Array.from({ length: count }, generateKey);
  await withClient(url, async (client) => {
    for (let at = 0; at < count; at += BATCH) {
      const part = tokens.slice(at, at + BATCH);
      await client.query(
        `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, trust_id)
         SELECT gen_random_uuid(), $1, decode(digest, 'hex'), prefix, now() + interval '6 hours', 'exchange', $5, $2
         FROM unnest($3::text[], $4::text[]) AS token (digest, prefix)`,
        [keyId, id, part.map(digestKey), part.map(shownPrefix), `job ${randomBytes(8).toString('hex')}`],
      );
    }
  });
  return tokens;
}

async function withClient(url, work) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

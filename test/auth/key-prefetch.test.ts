import { KeyCache, MAX_GRANTS } from '../../src/auth/key-cache.js';
import { digestKey } from '../../src/keys/key-secret.js';
import { storeTokens, storeTrust } from '../identity/stored-tokens.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';

never(
  'loads keys at the start whatever the number of tokens, and of tokens those of the last minutes',
  async () => {
    const first = await startTestGateway();
    const { id: keyId } = await first.admin<{ id: string }>('POST', '/keys', {
      ...{ team: 'default', name: 'ci', secret: false },
    });
    const trustId = await storeTrust(first.database, keyId);
    const [old] = await storeTokens(first.database, { keyId, trustId });
    await first.database.query(
      `UPDATE gateway_key_secret SET last_used_at = now() - interval '11 minutes' WHERE digest = decode($1, 'hex')`,
      [digestKey(old!)],
    );
    await first.database.query(
      `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, last_used_at, kind, subject, trust_id)
     SELECT gen_random_uuid(), $1, sha256(i::text::bytea), 'ptn_', now() + interval '1 hour', now() + interval '1 hour',
            'exchange', 'job', $2
     FROM generate_series(1, ${MAX_GRANTS + 1}) AS i`,
      [keyId, trustId],
    );
    // The plan of the prefetch would depend on when the autovacuum comes.
    await first.database.query('ANALYZE gateway_key_secret');
    const replica = await startTestGateway({}, first.database);
    const cache = replica.gateway.app.get(KeyCache);
    // The key was never used, so it is the last.
    await eventually(() => cache.get(digestKey(first.key)));
    expect(cache.get(digestKey(old!))).toBeUndefined();
    expect(cache.size).toBe(MAX_GRANTS + 1);
    await replica.stop();
    await first.stop();
  },
);

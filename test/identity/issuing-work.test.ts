import pg from 'pg';
import type { DataSource } from 'typeorm';
import { issueToken } from '../../src/identity/trusts/issued-tokens.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { storeTokens, storeTrust } from './stored-tokens.js';

const TRUSTS = 40;
const TOKENS = 200;

let postern: TestGateway;
let client: pg.Client;
beforeAll(async () => {
  postern = await startTestGateway();
  client = new pg.Client({ connectionString: postern.database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await postern.stop();
});

/** How many rows of tokens this session has read; only differences mean something. */
async function tuplesRead(): Promise<number> {
  const { rows } = await client.query<{ tuples: number }>(
    `SELECT (seq_tup_read + idx_tup_fetch)::int AS tuples FROM pg_stat_xact_user_tables
     WHERE relid = 'gateway_key_secret'::regclass`,
  );
  return rows[0]!.tuples;
}

it('to issue a token, Postgres reads the tokens of its trust, and not those of others', async () => {
  const trusts: string[] = [];
  for (let i = 0; i < TRUSTS; i++) {
    const key = { team: 'default', name: `job-${i}`, secret: false };
    const { id: keyId } = await postern.admin<{ id: string }>('POST', '/keys', key);
    const trustId = await storeTrust(postern.database, keyId);
    await storeTokens(postern.database, { keyId, trustId, count: TOKENS });
    trusts.push(trustId);
  }
  await client.query('VACUUM ANALYZE gateway_key_secret');
  const runner = { connect: () => Promise.resolve(client), release: () => Promise.resolve() };
  const dataSource = { createQueryRunner: () => runner } as unknown as DataSource;
  const now = Date.now() / 1_000;
  const request = { version: 1, subject: 'job', from: now - 3_600, until: now + 3_600 };
  // The sixth time, Postgres may have a plan for every trust.
  for (const trustId of trusts.slice(0, 7)) {
    await client.query('BEGIN');
    const before = await tuplesRead();
    expect(await issueToken(dataSource, { ...request, trustId })).toMatchObject({
      allowed: true,
      full: false,
    });
    expect((await tuplesRead()) - before).toBeLessThanOrEqual(TOKENS + 10);
    await client.query('COMMIT');
  }
});

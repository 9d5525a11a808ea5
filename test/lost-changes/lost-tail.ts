import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createDatabaseOn } from '../../src/testing/test-database.js';
import { digestKey, generateKey, shownPrefix } from '../../src/keys/key-secret.js';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { LogCluster } from '../support/log-cluster.js';
import { PostgresRelay } from '../support/postgres-relay.js';

/** The connection of the change feed. */
export const FEED = 'postern-changes/2';

/** What a server without the last transactions has as it was. */
const TABLES = [
  'admin_session',
  'admin_token',
  'audit_log',
  'change_counter',
  'gateway_key',
  'gateway_key_secret',
  'person',
  'sign_in',
  'team',
  'trust',
];

export interface Replica {
  postern: TestGateway;
  relay: PostgresRelay;
}

/** Replicas with a Postgres that can lose its last transactions, each by a relay of its own. */
export class LostTail {
  private constructor(
    private readonly cluster: LogCluster,
    readonly database: TestDatabase,
    readonly replicas: Replica[],
    private readonly variables: Record<string, string>,
  ) {}

  static async start(count: number, variables: Record<string, string>): Promise<LostTail> {
    const cluster = await LogCluster.start();
    const made = await createDatabaseOn(cluster.url, 'template1');
    const database: TestDatabase = {
      ...made,
      find: <T extends object>(text: string, values?: unknown[]) =>
        eventually(async () => (await made.query<T>(text, values))[0]),
    };
    const tail = new LostTail(cluster, database, [], variables);
    for (let i = 0; i < count; i++) await tail.add();
    return tail;
  }

  /** Starts one more replica. @param dataDir of one that was killed */
  async add(dataDir?: string): Promise<Replica> {
    const relay = await PostgresRelay.to(this.database.url);
    const variables = { ...this.variables, DATABASE_URL: relay.url, ...(dataDir && { DATA_DIR: dataDir }) };
    const postern = await startTestGateway(variables, this.database);
    const replica = { postern, relay };
    this.replicas.push(replica);
    return replica;
  }

  /** What is committed from now on will be lost. @param isCounted whether the gateways will notice it by their counts */
  async keep(isCounted: boolean): Promise<void> {
    const tables = isCounted ? [...TABLES, 'gateway_run'] : TABLES;
    await this.database.query(
      `DROP SCHEMA IF EXISTS standby CASCADE; CREATE SCHEMA standby;
       ${tables.map((name) => `CREATE TABLE standby.${name} AS TABLE ${name}`).join(';')}`,
    );
  }

  /** Cuts every replica off, loses what was committed since keep(), and starts the server again. */
  async lose(): Promise<void> {
    for (const { relay } of this.replicas) relay.setAll('cut');
    const tables = await this.database.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'standby'`,
    );
    // In one transaction, without triggers and references: as files that are older.
    await this.database.query(
      `SET LOCAL session_replication_role = replica;
       ${tables.map(({ name }) => `DELETE FROM ${name}; INSERT INTO ${name} SELECT * FROM standby.${name}`).join(';')}`,
    );
    await this.cluster.stop();
    await this.cluster.begin();
  }

  async stop(): Promise<void> {
    for (const { postern, relay } of [...this.replicas].reverse()) {
      await postern.stop();
      await rm(postern.dataDir, { recursive: true, force: true });
      await relay.close();
    }
    await this.database.drop();
    await this.cluster.remove();
  }
}

/** Stores a person with a key of their own, a sign-in and its token. */
export async function storeSignIn(
  database: TestDatabase,
  keyId: string,
): Promise<{ personId: string; signInId: string; token: string }> {
  const [personId, signInId, token] = [randomUUID(), randomUUID(), generateKey()];
  await database.query(
    `INSERT INTO person (id, issuer, subject, name) VALUES ($1::uuid, 'https://login.example.com', $1::uuid::text, 'Jo')`,
    [personId],
  );
  await database.query(
    `INSERT INTO sign_in (id, person_id, key_id, surface, expires_at, idp_refresh)
     VALUES ($1, $2, $3, 'test', now() + interval '1 hour', 'sealed')`,
    [signInId, personId, keyId],
  );
  await database.query(
    `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, sign_in_id)
     VALUES (gen_random_uuid(), $1, decode($2, 'hex'), $3, now() + interval '1 hour', 'sign_in', 'jo', $4)`,
    [keyId, digestKey(token), shownPrefix(token), signInId],
  );
  return { personId, signInId, token };
}

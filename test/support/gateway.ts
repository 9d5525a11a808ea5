import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { ChangeFeed } from '../../src/database/change-feed.js';
import { DatabaseService } from '../../src/database/database.service.js';
import { type Gateway, startGateway } from '../../src/runtime/gateway.js';
import { readEnv } from '../../src/runtime/read-env.js';
import { afterFile } from './after-file.js';
import { rootModule } from './app-modules.js';
import { createDatabase, type TestDatabase } from './database.js';
import { eventually } from './eventually.js';

export const ADMIN_TOKEN = 'test-admin-token-0123456789';
export const PROVIDER_KEY = 'sk-provider-secret-0123456789';

const READY_WITHIN_MS = 60_000;
const TOLD_WITHIN_MS = 5_000;

export interface TestGateway {
  gateway: Gateway;
  url: string;
  port: number;
  /** The first gateway key, of team `default`: inference endpoints only. */
  key: string;
  database: TestDatabase;
  dataDir: string;
  /** Calls the admin API and returns the parsed answer. */
  admin<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>;
  /** A new key with these properties. */
  createKey(properties?: object): Promise<string>;
  /** Stores providers that nobody listens for, so that keys can name them. */
  storeProviders(...names: string[]): Promise<void>;
  /** The row of a call, once it is there. */
  row(requestId: string): Promise<LogRowView>;
  rowCount(): Promise<number>;
  stop(): Promise<void>;
}

export type LogRowView = Record<string, unknown> & { id: string; outcome: string; status: number | null };

/** Those that nobody has stopped yet. */
const running = new Set<TestGateway>();

afterFile(async () => {
  await Promise.all([...running].map((gateway) => gateway.stop()));
});

/**
 * Waits until a gateway was notified of every change so far: a late notification makes it look its keys up again, also
 * after a call has made one known. Not for long, because a test may have cut the connection.
 */
async function changesApplied({ app }: Gateway): Promise<void> {
  const { subscribers } = app.get<unknown, { subscribers: Map<string, { applied: bigint | null }> }>(
    ChangeFeed,
  );
  const counters = await app
    .get(DataSource)
    .query<{ name: string; value: string }[]>('SELECT name, value FROM change_counter');
  const isApplied = ({ name, value }: { name: string; value: string }) => {
    const subscriber = subscribers.get(name);
    return subscriber === undefined || (subscriber.applied !== null && subscriber.applied >= BigInt(value));
  };
  await eventually(() => counters.every(isApplied), TOLD_WITHIN_MS).catch(() => {});
}

/**
 * The gateway as shipped, in this process, on a database of its own and real sockets. It is ready, and its first key is
 * there, unless DATABASE_URL leads to an unavailable Postgres.
 *
 * @param variables environment variables over the defaults of a test
 * @param shared the database of another gateway, for a replica; it is not dropped by this one
 */
export async function startTestGateway(
  variables: Record<string, string> = {},
  shared?: TestDatabase,
): Promise<TestGateway> {
  const database = shared ?? (await createDatabase());
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-data-'));
  const root = rootModule();
  const env = await readEnv(
    root,
    {},
    {
      NODE_ENV: 'test',
      PORT: '0',
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      ADMIN_TOKEN,
      LOG_LEVEL: 'fatal',
      SHUTDOWN_GRACE_MS: '1000',
      ...(variables.PROVIDER_URL && { PROVIDER_KEY }),
      ...variables,
    },
  );
  let key = '';
  const gateway = await startGateway(root, env, {
    report: () => {},
    onFirstKey: (first) => (key = first),
    onPermanentError: (error) => {
      throw error;
    },
  });
  if (variables.DATABASE_URL === undefined || (await answers(variables.DATABASE_URL))) {
    const database = gateway.app.get(DatabaseService);
    // The start waits for its first look at Postgres for seconds only, and on a busy machine that takes longer.
    await eventually(() => database.notReady === null, READY_WITHIN_MS);
    await changesApplied(gateway);
  }
  let names = 0;
  const admin = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${gateway.adminUrl ?? gateway.url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    running.delete(started);
    await gateway.stop();
    if (shared === undefined) await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  };
  const started: TestGateway = {
    gateway,
    url: gateway.url,
    port: Number(new URL(gateway.url).port),
    get key() {
      return key;
    },
    database,
    dataDir,
    admin,
    createKey: async (properties = {}) => {
      const made = await admin<{ key: string }>('POST', '/keys', {
        team: 'default',
        name: `key-${++names}`,
        ...properties,
      });
      await changesApplied(gateway);
      return made.key;
    },
    storeProviders: async (...names) => {
      for (const name of names)
        await admin('POST', '/providers', { name, url: 'http://127.0.0.1:9', secret: null });
    },
    row: (requestId) => database.find<LogRowView>('SELECT * FROM request_log WHERE id = $1', [requestId]),
    rowCount: async () => {
      const rows = await database.query<{ count: number }>('SELECT count(*)::int AS count FROM request_log');
      return rows[0]!.count;
    },
    stop: () => (stopped ??= stop()),
  };
  running.add(started);
  return started;
}

/** Is there a Postgres at the end of this address? */
async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

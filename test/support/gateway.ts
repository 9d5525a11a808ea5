import pg from 'pg';
import type { Gateway } from '../../src/runtime/gateway.js';
import { changesApplied, runGateway, untilReady } from '../../src/testing/run-gateway.js';
import { handle, type RequestRow, type TestGateway as Handle } from '../../src/testing/start-gateway.js';
import { afterFile } from './after-file.js';
import { rootModule } from './app-modules.js';
import { createDatabase, type TestDatabase } from './database.js';

export const ADMIN_TOKEN = 'test-admin-token-0123456789';
export const PROVIDER_KEY = 'sk-provider-secret-0123456789';

const ROW_WITHIN_MS = 150_000;

export interface TestGateway extends Pick<Handle, 'url' | 'key' | 'admin' | 'createKey' | 'stop'> {
  gateway: Gateway;
  port: number;
  database: TestDatabase;
  dataDir: string;
  /** Stores providers that nobody listens for, so that keys can name them. */
  storeProviders(...names: string[]): Promise<void>;
  /** The row of a call, once it is there. */
  row(requestId: string): Promise<LogRowView>;
  rowCount(): Promise<number>;
}

export type LogRowView = RequestRow;

/** Those that nobody has stopped yet. */
const running = new Set<TestGateway>();

afterFile(async () => {
  await Promise.all([...running].map((gateway) => gateway.stop()));
});

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
  const started = await runGateway({
    root: rootModule(),
    database,
    variables: { ADMIN_TOKEN, ...(variables.PROVIDER_URL && { PROVIDER_KEY }), ...variables },
  }).catch(async (error: unknown) => {
    if (shared === undefined) await database.drop();
    throw error;
  });
  const { gateway, dataDir } = started;
  if (variables.DATABASE_URL === undefined || (await answers(variables.DATABASE_URL))) {
    await untilReady(gateway);
    await changesApplied(gateway, database);
  }
  const { admin, createKey, row } = handle(started, database);
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    running.delete(postern);
    await started.stop();
    if (shared === undefined) await database.drop();
  };
  const postern: TestGateway = {
    gateway,
    url: gateway.url,
    port: Number(new URL(gateway.url).port),
    get key() {
      return started.key;
    },
    database,
    dataDir,
    admin,
    createKey,
    storeProviders: async (...names) => {
      for (const name of names)
        await admin('POST', '/providers', { name, url: 'http://127.0.0.1:9', secret: null });
    },
    row: (requestId) => row(requestId, ROW_WITHIN_MS),
    rowCount: async () => {
      const rows = await database.query<{ count: number }>('SELECT count(*)::int AS count FROM request_log');
      return rows[0]!.count;
    },
    stop: () => (stopped ??= stop()),
  };
  running.add(postern);
  return postern;
}

/** Is there a Postgres at the end of this address? */
async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 20_000 });
  client.on('error', () => {});
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

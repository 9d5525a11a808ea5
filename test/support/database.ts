import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { eventually } from './eventually.js';

declare global {
  /** Set by the test environment. */
  var testFailed: boolean | undefined;
}

export interface TestDatabase {
  url: string;
  /** Runs a query on one of a few connections: a new one costs more than most queries, above all where a test asks until it is so. */
  query<T extends object>(text: string, values?: unknown[]): Promise<T[]>;
  /** Runs a query again until it finds a row. */
  find<T extends object>(text: string, values?: unknown[]): Promise<T>;
  /** Drops it, unless a test of this file failed: then it stays for inspection. */
  drop(): Promise<void>;
}

/** Waits until what is recorded from now on has a later `recorded_at` than every call in the log. */
export async function nextMillisecond(database: TestDatabase): Promise<void> {
  await database.find(
    `SELECT 1 WHERE date_trunc('milliseconds', clock_timestamp()) >
       COALESCE((SELECT max(recorded_at) FROM request_log WHERE recorded_at <= clock_timestamp()), '-infinity')`,
  );
}

async function onConnection<T>(url: string, task: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await task(client);
  } finally {
    await client.end();
  }
}

const onServer = <T extends object>(url: string, text: string, values?: unknown[]) =>
  onConnection(url, async (client) => (await client.query<T>(text, values)).rows);

/**
 * A migrated database of this file's own, cloned from a template of the run.
 *
 * @param options.empty not migrated
 * @param options.days false: the request log has no partitions yet, as when a gateway starts for the first time
 */
export async function createDatabase({ empty = false, days = true } = {}): Promise<TestDatabase> {
  const server = process.env.POSTERN_TEST_SERVER!;
  const name = `postern_test_${randomBytes(6).toString('hex')}`;
  const migrated = process.env.POSTERN_TEST_TEMPLATE!;
  const template = empty ? 'template1' : days ? `${migrated}_days` : migrated;
  await onServer(server, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const connect = () => {
    const pool = new pg.Pool({ connectionString: url.href, allowExitOnIdle: true });
    // Postgres ends connections in some tests.
    return pool.on('error', () => {});
  };
  let pool = connect();
  const query = async <T extends object>(text: string, values?: unknown[]) => {
    const { rows } = await pool.query<T>(text, values);
    // Settings of the database hold from the next connection on.
    if (text.includes('ALTER DATABASE')) {
      await pool.end();
      pool = connect();
    }
    return rows;
  };
  return {
    url: url.href,
    query,
    find: <T extends object>(text: string, values?: unknown[]) =>
      eventually(async () => (await query<T>(text, values))[0]),
    drop: async () => {
      const ended = pool.ended ? null : pool.end();
      if (globalThis.testFailed) {
        process.stdout.write(`Kept for inspection: database ${name}\n`);
        return;
      }
      // Also ends what a query that waits for something still uses.
      await onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await ended;
    },
  };
}

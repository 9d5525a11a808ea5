import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { postgresForTests } from './postgres.js';
import { TEMPLATE } from './template.js';

/** invalid_catalog_name: there is no such template. */
const NO_DATABASE = '3D000';

/** A database of a test's own. */
export interface TestDatabase {
  readonly url: string;
  /** Runs a query on one of a few connections: a new one costs more than most queries. */
  query<T extends object>(text: string, values?: unknown[]): Promise<T[]>;
  drop(): Promise<void>;
}

/**
 * Creates a database, on the Postgres of TEST_DATABASE_URL or the embedded one of this process. The first gateway on it
 * makes the tables, unless they are in the template of the server already.
 */
export async function createDatabase(): Promise<TestDatabase> {
  const server = await postgresForTests();
  try {
    return await createDatabaseOn(server, TEMPLATE);
  } catch (error) {
    if ((error as { code?: string }).code !== NO_DATABASE) throw error;
    return await createDatabaseOn(server, 'template1');
  }
}

/** @param template a database that is copied */
export async function createDatabaseOn(server: string, template: string): Promise<TestDatabase> {
  const name = `postern_test_${randomBytes(6).toString('hex')}`;
  await onServer(server, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const connect = () => {
    const pool = new pg.Pool({ connectionString: url.href, allowExitOnIdle: true });
    // Postgres ends connections in some tests.
    return pool.on('error', () => {});
  };
  let pool = connect();
  return {
    url: url.href,
    query: async <T extends object>(text: string, values?: unknown[]) => {
      const { rows } = await pool.query<T>(text, values);
      // Settings of the database hold from the next connection on.
      if (text.includes('ALTER DATABASE')) {
        await pool.end();
        pool = connect();
      }
      return rows;
    },
    drop: async () => {
      const ended = pool.ended ? null : pool.end();
      // Also ends what a query that waits for something still uses.
      await onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await ended;
    },
  };
}

async function onServer(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

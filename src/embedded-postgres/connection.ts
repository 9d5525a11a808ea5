import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { codeOf, EmbeddedPostgresError, USE_ANOTHER } from './embedded-postgres-error.js';
import { NAME } from './cluster.js';
import { patience } from '../platform/patience.js';

const CONNECT = patience('a connection to an embedded Postgres', 5_000);

/** A server that takes connections. */
export interface Server {
  pid: number;
  port: number;
  password: string;
}

/** Creates the database `postern` when this is a new cluster. */
export async function ensureDatabase(server: Server): Promise<void> {
  await withClient(server, 'postgres', async (client) => {
    const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [NAME]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${NAME}`);
  });
}

/** How often, and how far apart, the server is asked: it lists a connection for a moment after it was closed. */
const LOOKS = 20;
const LOOK_PAUSE_MS = 50;

/** Whether others are connected, and stay so for a second. */
export async function hasClients(server: Server): Promise<boolean> {
  return withClient(server, 'postgres', async (client) => {
    const sql =
      "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
    for (let look = 1; (await client.query(sql)).rowCount !== 0; look++) {
      if (look === LOOKS) return true;
      await sleep(LOOK_PAUSE_MS);
    }
    return false;
  });
}

/** False while it starts or stops. */
export async function responds(server: Server): Promise<boolean> {
  try {
    await withClient(server, 'postgres', (client) => client.query('SELECT 1'));
    return true;
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error;
    return false;
  }
}

async function withClient<T>(
  server: Server,
  database: string,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({
    host: '127.0.0.1',
    port: server.port,
    user: NAME,
    password: server.password,
    database,
    ssl: false,
    connectionTimeoutMillis: CONNECT.ms,
  });
  client.on('error', () => undefined); // A server that goes down between two queries: the next query reports it.
  try {
    await client.connect().catch((error: unknown) => {
      if (codeOf(error)?.startsWith('28') !== true) throw error;
      throw new EmbeddedPostgresError(
        `the embedded server rejected the password in its folder; restore the right one, or ${USE_ANOTHER}`,
        { cause: error },
      );
    });
    return await use(client);
  } finally {
    await client.end();
  }
}

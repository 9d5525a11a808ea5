import { Client } from 'pg';
import { codeOf, EmbeddedPostgresError, USE_ANOTHER } from './embedded-postgres-error.js';
import { NAME } from './cluster.js';

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

/** Connections of others. */
export async function countClients(server: Server): Promise<number> {
  return withClient(server, 'postgres', async (client) => {
    const sql =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    const { rows } = await client.query<{ n: number }>(sql);
    return rows[0]?.n ?? 0;
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
    connectionTimeoutMillis: 5_000,
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

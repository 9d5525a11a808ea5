import pg from 'pg';
import { migrate } from '../database/migrate.js';
import { createDaysAhead, createPartitions, DAY_MS } from '../request-log/partitions.js';

/** On a Postgres that is for tests alone: a database with the tables of a gateway, which each test copies. */
export const TEMPLATE = 'postern_template';

/** Spares a Postgres that is for tests alone what they do not need. */
export function tuneForTests(server: string): Promise<void> {
  return onServer(server, async (client) => {
    // A run makes thousands of connections, and each derives a key in as many rounds as the password was stored with.
    await client.query(`SET scram_iterations = 1; ALTER ROLE postern PASSWORD '${client.password}'`);
    // Databases that live for seconds need none, and there are always some to look through.
    await client.query('ALTER SYSTEM SET autovacuum = off');
    await client.query('SELECT pg_reload_conf()');
  });
}

/** Creates a database with all tables. The request log has no partitions yet, as before the first start of a gateway. */
export async function createTemplate(server: string, name: string): Promise<void> {
  await onServer(server, (client) => client.query(`CREATE DATABASE ${name}`));
  await migrate(urlOf(server, name));
}

/** Copies it, with the partitions that each gateway would create: they take longer than the rest of a start. */
export async function createTemplateWithDays(server: string, name: string, from: string): Promise<void> {
  await onServer(server, (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${from} STRATEGY file_copy`),
  );
  await onServer(urlOf(server, name), async (client) => {
    await createDaysAhead(client);
    // One more: midnight may come.
    await createPartitions(client, [Date.now() + 8 * DAY_MS]);
  });
}

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

async function onServer(url: string, task: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await task(client);
  } finally {
    await client.end();
  }
}

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { directUrl, type Settings } from '../config/settings.js';
import { clientOptions } from './data-source-options.js';
import { GatewayClient, PooledClient } from './gateway-client.js';
import { PermanentDatabaseError, permanentError } from './permanent-database-error.js';
import { patience } from '../platform/patience.js';

const PURPOSE = {
  applicationName: 'postern-start',
  queryTimeout: patience('a check of a connection', 5_000),
};
const CHANNEL = 'postern_start';
/** Postgres delivers a notification at the latest with the second response after its commit; the rest is patience. */
const ROUND_TRIPS = 40;
const PAUSE_MS = 50;

/** Of a session; the first three must be those of the other one too. */
const PLACE = `
  SELECT current_database() AS database, current_schema() AS schema, pg_postmaster_start_time()::text AS started,
    current_setting('synchronous_commit') AS commits`;

interface Place {
  database: string;
  schema: string | null;
  started: string;
  commits: string;
}

/**
 * Finds out whether the connections have what the gateway needs of them.
 *
 * @throws PermanentDatabaseError if the direct one loses notifications, as behind a pooler in transaction mode, or if a
 *   commit through DATABASE_URL does not survive a crash
 * @throws Error if the two reach different databases, as for a moment in a failover
 */
export async function checkConnections(
  env: Pick<Settings, 'databaseUrl' | 'databaseDirectUrl'>,
): Promise<void> {
  const url = directUrl(env);
  const name = env.databaseDirectUrl === undefined ? 'DATABASE_URL' : 'DATABASE_DIRECT_URL';
  const here = await checkDirect(url, name).catch((error: unknown) => {
    // The remedies name DATABASE_URL.
    const permanent = permanentError(error);
    if (permanent === null) throw error;
    throw new PermanentDatabaseError(permanent.message.replace(/DATABASE_URL/g, name), { cause: error });
  });
  if (url === env.databaseUrl) return;
  const there = await connected(new PooledClient(clientOptions(env.databaseUrl, PURPOSE)), placeOf);
  if (here.database !== there.database || here.schema !== there.schema || here.started !== there.started)
    throw new Error(
      'DATABASE_URL and DATABASE_DIRECT_URL lead to different servers, databases or schemas; set both to the same one',
    );
  if (there.commits === 'off' || there.commits === 'local')
    throw new PermanentDatabaseError(
      `Sessions of DATABASE_URL have synchronous_commit = ${there.commits}, so a crash of Postgres could undo what was acknowledged. Run ALTER ROLE … SET synchronous_commit = on for its user, and let the pooler reconnect.`,
    );
}

function checkDirect(url: string, name: string): Promise<Place> {
  const open = () => new GatewayClient(clientOptions(url, PURPOSE));
  return connected(open(), async (listener) => {
    // From a second connection: a pooler may deliver what a connection sends to itself.
    if (await connected(open(), (sender) => isNotified(listener, sender))) return placeOf(listener);
    throw new PermanentDatabaseError(
      `Notifications of Postgres do not arrive through ${name}, as behind a pooler in transaction mode. Set DATABASE_DIRECT_URL to a connection without such a pooler.`,
    );
  });
}

async function isNotified(listener: pg.Client, sender: pg.Client): Promise<boolean> {
  const nonce = randomUUID();
  let arrived = false;
  listener.on('notification', ({ payload }) => (arrived ||= payload === nonce));
  await listener.query(`LISTEN ${CHANNEL}`);
  await sender.query('SELECT pg_notify($1, $2)', [CHANNEL, nonce]);
  for (let trip = 0; trip < ROUND_TRIPS && !arrived; trip++) {
    if (trip > 1) await sleep(PAUSE_MS);
    await listener.query('SELECT 1');
  }
  return arrived;
}

async function placeOf(client: pg.Client): Promise<Place> {
  return (await client.query<Place>(PLACE)).rows[0]!;
}

/** @returns what `work` returns; the connection is closed then */
async function connected<T>(client: pg.Client, work: (client: pg.Client) => Promise<T>): Promise<T> {
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}

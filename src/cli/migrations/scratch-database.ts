import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clientOptions } from '../../database/data-source-options.js';
import { GatewayClient } from '../../database/gateway-client.js';
import { CliError } from '../cli-error.js';

const PURPOSE = { applicationName: 'postern-scratch' };
/** insufficient_privilege */
const NOT_ALLOWED = '42501';

/**
 * Runs `work` with the URL of a new, empty database. It is dropped afterwards, also if `work` fails, or a signal ends the
 * command.
 *
 * @param server where to create it; undefined: on an embedded Postgres of its own
 * @param report gets one line for each slow step
 * @throws CliError if the user of the server may not create databases, or on a signal
 */
export async function withScratchDatabase<T>(
  server: string | undefined,
  report: (line: string) => void,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const signals = listenToSignals();
  try {
    if (server !== undefined) return await withDatabaseOn(server, (url) => signals.orFail(work(url)));
    const embedded = await startServer(report);
    try {
      return await withDatabaseOn(embedded.url, (url) => signals.orFail(work(url)));
    } finally {
      await embedded.remove();
    }
  } finally {
    signals.close();
  }
}

async function withDatabaseOn<T>(server: string, work: (url: string) => Promise<T>): Promise<T> {
  const name = `postern_scratch_${randomBytes(6).toString('hex')}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await onServer(server, `CREATE DATABASE ${name}`).catch((error: { code?: string }) => {
    if (error.code !== NOT_ALLOWED) throw error;
    throw new CliError(
      `${new URL(server).username} may not create databases on ${url.host}, and the comparison needs a scratch database; run ` +
        'ALTER ROLE … CREATEDB, or set DATABASE_URL to another Postgres for this command, such as one on this machine',
    );
  });
  try {
    return await work(url.href);
  } finally {
    // What `work` left open does not keep it.
    await onServer(server, `DROP DATABASE ${name} WITH (FORCE)`);
  }
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new GatewayClient(clientOptions(url, PURPOSE));
  try {
    await client.connect();
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function startServer(
  report: (line: string) => void,
): Promise<{ url: string; remove: () => Promise<void> }> {
  const { startEmbeddedPostgres } = await import('../../embedded-postgres/embedded-postgres.js');
  const folder = await mkdtemp(join(tmpdir(), 'postern-scratch-'));
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  try {
    const server = await startEmbeddedPostgres({ dataDir: folder, fsync: false, report });
    return {
      url: server.url,
      remove: async () => {
        await server.stop();
        // It may lie elsewhere, where the server can get to it.
        await rm(server.folder, { recursive: true, force: true });
        await removeFolder();
      },
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** Lets a signal fail the work, so that what was made for it is removed. A second signal ends the process. */
function listenToSignals(): { orFail: <T>(work: Promise<T>) => Promise<T>; close: () => void } {
  let interrupt!: () => void;
  const interrupted = new Promise<never>((_, reject) => {
    interrupt = () => reject(new CliError('interrupted'));
  });
  // It may come while nobody waits for it yet.
  interrupted.catch(() => {});
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  return {
    orFail: (work) => Promise.race([work, interrupted]),
    close: () => void process.off('SIGINT', interrupt).off('SIGTERM', interrupt),
  };
}

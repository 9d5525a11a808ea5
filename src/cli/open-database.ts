import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type DataDir, DataDirError, openDataDir } from '../platform/data-dir.js';
import { patience } from '../platform/patience.js';
import type { Env } from '../config/env.js';
import type { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.js';
import { GatewayClient } from '../database/gateway-client.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';

export interface OpenDatabase {
  url: string;
  /** Stops an embedded server that is no longer used. The server of a running gateway keeps running. */
  close: () => Promise<void>;
}

/**
 * Opens the database of the gateway: DATABASE_URL, or the embedded one in DATA_DIR, which is started if it does not run.
 *
 * @param report gets one line for each slow step
 * @throws DataDirError if there is no database yet. A command never creates one: an empty one in the wrong folder would
 *   look like lost keys, and the first start creates the first key
 */
export async function openDatabase(env: Env, report: (line: string) => void): Promise<OpenDatabase> {
  if (env.databaseUrl !== undefined) return { url: env.databaseUrl, close: () => Promise.resolve() };
  // openDataDir() would create the folder.
  const dataDir = existsSync(join(env.dataDir, 'postern-data')) ? await openDataDir(env.dataDir) : null;
  const { postgresHome } = await import('../embedded-postgres/home.js');
  const home = dataDir && (await postgresHome(dataDir.path, () => {}));
  if (dataDir === null || home === null || !existsSync(join(home.folder, 'cluster'))) {
    throw new DataDirError(
      `there is no database in ${env.dataDir} yet; run npm start first, or set DATA_DIR or DATABASE_URL to the right place`,
    );
  }

  const gateway = await dataDir.holder();
  const { postgres, presence } = await joinServer(dataDir.path, report);
  return {
    url: postgres.url,
    close: async () => {
      await presence.end();
      // The lock keeps gateways from starting on this server while it stops. A running gateway has the lock: its server stays.
      if (!(await holdSoon(dataDir, gateway === null ? LOCK_WAIT.ms : 0))) return;
      try {
        // Of several commands at once, the last one to end stops the server, whichever started it.
        await postgres.stop({ onlyIfUnused: true });
      } finally {
        dataDir.release();
      }
    },
  };
}

/**
 * Starts or joins the server and stays connected, so that the server counts as used. If another command was about to
 * stop it, it is started again.
 */
async function joinServer(
  dataDir: string,
  report: (line: string) => void,
): Promise<{ postgres: EmbeddedPostgres; presence: pg.Client }> {
  const { startEmbeddedPostgres } = await import('../embedded-postgres/embedded-postgres.js');
  for (let attempt = 1; ; attempt++) {
    const postgres = await startEmbeddedPostgres({ dataDir, report });
    const presence = new GatewayClient({ connectionString: postgres.url });
    try {
      await presence.connect();
      return { postgres, presence };
    } catch (error) {
      if (attempt === MAX_JOINS || !isDatabaseUnavailable(error)) throw error;
    }
  }
}

const MAX_JOINS = 5;

/** How long to wait for the lock of another command that is ending too, in milliseconds: it looks for others for a second. */
const LOCK_WAIT = patience('another command with this DATA_DIR', 3_000);

async function holdSoon(dataDir: DataDir, waitMs: number): Promise<boolean> {
  for (const deadline = Date.now() + waitMs; ; await sleep(20)) {
    try {
      await dataDir.hold();
      return true;
    } catch (error) {
      if (!(error instanceof DataDirError)) throw error;
      if (Date.now() >= deadline) return false;
    }
  }
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type DataDir, DataDirError, openDataDir } from '../platform/data-dir.js';
import type { Env } from '../config/env.js';
import type { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';

export interface OpenDatabase {
  url: string;
  /** Stops an embedded server that nobody needs any more; a gateway's is left running. */
  close(): Promise<void>;
}

/**
 * The database that the gateway uses: DATABASE_URL, else the embedded one of DATA_DIR, whether or not it runs.
 *
 * @param report gets one line for each step that may take a while
 * @throws DataDirError when there is no database yet: a command never makes one, because an empty one in the wrong
 *   folder would look like lost keys, and because the first key is the first start's to give
 */
export async function openDatabase(env: Env, report: (line: string) => void): Promise<OpenDatabase> {
  if (env.databaseUrl !== undefined) return { url: env.databaseUrl, close: () => Promise.resolve() };
  // openDataDir() would make the folder.
  const dataDir = existsSync(join(env.dataDir, 'postern-data')) ? await openDataDir(env.dataDir) : null;
  const { postgresHome } = await import('../embedded-postgres/home.js');
  const home = dataDir && (await postgresHome(dataDir.path, () => {}));
  if (dataDir === null || home === null || !existsSync(join(home.folder, 'cluster'))) {
    throw new DataDirError(
      `there is no database in ${env.dataDir} yet; run npm start first, or set DATA_DIR or DATABASE_URL to where it is`,
    );
  }

  const gateway = await dataDir.holder();
  const { postgres, presence } = await joinServer(dataDir.path, report);
  return {
    url: postgres.url,
    close: async () => {
      await presence.end();
      // While we stop the server no gateway may start on it; one that runs already has this and keeps the server.
      if (!(await holdSoon(dataDir, gateway === null ? ENDING_MS : 0))) return;
      try {
        // Whoever started it: of several commands at once, the last one to end stops the server.
        await postgres.stop({ onlyIfUnused: true });
      } finally {
        dataDir.release();
      }
    },
  };
}

/**
 * Starts or joins the server and stays connected: from now on nobody takes it for unused. Another command may have
 * been about to stop it when it was joined; then it is started again.
 */
async function joinServer(
  dataDir: string,
  report: (line: string) => void,
): Promise<{ postgres: EmbeddedPostgres; presence: pg.Client }> {
  const { startEmbeddedPostgres } = await import('../embedded-postgres/embedded-postgres.js');
  for (let attempt = 1; ; attempt++) {
    const postgres = await startEmbeddedPostgres({ dataDir, report });
    const presence = new pg.Client({ connectionString: postgres.url });
    // The command's own connections tell of a server that goes away.
    presence.on('error', () => undefined);
    try {
      await presence.connect();
      return { postgres, presence };
    } catch (error) {
      if (attempt === JOINS_AT_MOST || !isDatabaseUnavailable(error)) throw error;
    }
  }
}

const JOINS_AT_MOST = 5;

/** Waits this long, in milliseconds, for another command that is ending too. */
const ENDING_MS = 500;

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

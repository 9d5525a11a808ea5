import { mkdir, realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FolderLock } from '../platform/folder-lock.js';
import { patience } from '../platform/patience.js';
import { EmbeddedPostgresError, ifThere } from './embedded-postgres-error.js';
import { postgresPackage, usableBinaries } from './binaries.js';
import { clusterExists, clusterPassword, createCluster, NAME } from './cluster.js';
import { hasClients, ensureDatabase, type Server } from './connection.js';
import { makePlaces, placesOf, postgresHome, type PostgresHome } from './home.js';
import { readPidFile, stopServer } from './server-process.js';
import { attach, launch, logTail } from './server.js';

export interface EmbeddedPostgresOptions {
  /** The instance's folder; its cluster is in `postgres/` below it if the server can get there. */
  dataDir: string;
  /** Gets one line for each step that may take a while. */
  report?: (line: string) => void;
  /** False only for clusters that need not survive a power cut, such as those of tests. */
  fsync?: boolean;
}

export interface EmbeddedPostgres {
  /** Connection URL of the database `postern`, password included. */
  url: string;
  /** The folder of the cluster, its password and its log. */
  folder: string;
  /** True when the server was running already, for another process or after a kill of ours. */
  attached: boolean;
  /**
   * Shuts the server down (fast) and waits until it is gone, whoever started it.
   * With `onlyIfUnused`, leaves it to the others when there are any other connections.
   */
  stop(options?: { onlyIfUnused?: boolean }): Promise<void>;
}

/** Another start may be running initdb or replaying a long log: this many ms. */
const LOCK_TIMEOUT = patience('another start of an embedded Postgres', 330_000);

/**
 * Starts the server of this DATA_DIR, or joins the one that runs, and answers when it takes connections.
 * Starts and stops of several processes take turns; the server itself outlives us until stop().
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const report = options.report ?? (() => undefined);
  const fsync = options.fsync ?? true;
  await mkdir(resolve(options.dataDir), { recursive: true, mode: 0o700 });
  const dataDir = await realpath(options.dataDir);
  return withLock(dataDir, report, async () => {
    const home = await postgresHome(dataDir, report);
    const cluster = join(home.folder, 'cluster');
    const release = await postgresPackage();
    const exists = await clusterExists(cluster, Number.parseInt(release.version, 10), () => logTail(home));
    const password = await clusterPassword(home, exists);
    const running = exists ? await attach(cluster, password, report) : null;
    if (running !== null) return handle(home, running, true);

    const native = await usableBinaries(release, home, report);
    if (!exists) {
      report(`creating the database in ${home.folder}`);
      await createCluster(home, native, password, fsync);
    }
    report('starting Postgres');
    const server = await launch({ home, native, password, fsync, report });
    return handle(home, server, server.attached);
  });

  async function handle(at: PostgresHome, server: Server, attached: boolean): Promise<EmbeddedPostgres> {
    try {
      await ensureDatabase(server);
    } catch (error) {
      // No caller has a reference to it, so nobody would stop it. One that ran before is left to those who use it.
      if (!attached) await stopServer(join(at.folder, 'cluster'), server.pid);
      throw error;
    }
    return {
      url: `postgres://${NAME}:${encodeURIComponent(server.password)}@127.0.0.1:${server.port}/${NAME}`,
      folder: at.folder,
      attached,
      stop: async ({ onlyIfUnused = false } = {}) => {
        const cluster = join(at.folder, 'cluster');
        const stop = async () => {
          const pid = (await readPidFile(cluster))?.pid ?? server.pid;
          const running = onlyIfUnused ? await attach(cluster, server.password, report) : null;
          if (running !== null && (await hasClients(running))) return;
          await stopServer(cluster, pid);
        };
        // Where the DATA_DIR has been removed, nobody else can start or stop this server.
        if ((await ifThere(stat(placesOf(dataDir).lock))) === null) await stop();
        else await withLock(dataDir, report, stop);
      },
    };
  }
}

async function withLock<T>(
  dataDir: string,
  report: (line: string) => void,
  task: () => Promise<T>,
): Promise<T> {
  await makePlaces(dataDir);
  const lock = new FolderLock(placesOf(dataDir).lock);
  const begin = Date.now();
  for (let told = false; ; await sleep(20 + Math.random() * 20)) {
    const holder = await lock.take();
    if (holder === null) break;
    const waited = Date.now() - begin;
    if (waited > LOCK_TIMEOUT.ms) {
      throw new EmbeddedPostgresError(
        `process ${holder.pid} is busy with ${placesOf(dataDir).inside}; stop it and start again`,
      );
    }
    if (!told && waited > 1_000)
      report(`waiting for process ${holder.pid}, which is starting or stopping Postgres`);
    told ||= waited > 1_000;
  }
  try {
    return await task();
  } finally {
    lock.release();
  }
}

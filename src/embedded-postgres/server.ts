import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedPostgresError, ifThere, USE_ANOTHER } from './embedded-postgres-error.js';
import { cannotRun, CHILD_ENVIRONMENT, damaged } from './cluster.js';
import { answers, type Server } from './connection.js';
import { giveToOwner, type PostgresHome } from './home.js';
import { isAlive, isServerOf, readPidFile, stopServer } from './server-process.js';

export interface LaunchOptions {
  home: PostgresHome;
  native: string;
  password: string;
  fsync: boolean;
  report: (line: string) => void;
}

/** Crash recovery replays up to max_wal_size (1 GB). */
const STARTUP_TIMEOUT = 300_000;
/** How long the processes of a killed server may take to notice that it is gone. */
const ORPHANS_TIMEOUT = 15_000;
const PORT_ATTEMPTS = 20;
const LOG_LIMIT = 4 * 1024 * 1024;

/** The server of this cluster that runs already; null when there is none. A stranger's pid file is removed. */
export async function attach(
  cluster: string,
  password: string,
  report: (line: string) => void,
): Promise<Server | null> {
  const deadline = Date.now() + STARTUP_TIMEOUT;
  for (let told = false; ; await sleep(20)) {
    const file = await readPidFile(cluster);
    if (file === null) return null;
    if (!(await isServerOf(file.pid, cluster))) {
      // Postgres takes any living process of its own user with this pid for the server, and would not start.
      // The file of a dead one it judges better: by the shared memory that file names.
      if (isAlive(file.pid)) await rm(join(cluster, 'postmaster.pid'), { force: true });
      return null;
    }
    const server = { pid: file.pid, port: file.port, password };
    if (file.status === 'ready' && (await answers(server))) return server;
    if (Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        `the server in ${cluster} (pid ${file.pid}) is ${file.status} for too long; end it and start again`,
      );
    }
    if (!told) report(`waiting for the Postgres that is ${file.status} (pid ${file.pid})`);
    told = true;
  }
}

/** Starts the server, on another port where the last one is taken. */
export async function launch(options: LaunchOptions): Promise<Server & { attached: boolean }> {
  const { home, password } = options;
  const cluster = join(home.folder, 'cluster');
  const orphansGone = Date.now() + ORPHANS_TIMEOUT;
  let port = await rememberedPort(home);
  for (let attempt = 1; ;) {
    port ??= await freePort();
    const start = (await ifThere(stat(logFile(home))))?.size ?? 0;
    const pid = await becomesReady(options, cluster, port);
    if (pid !== null) {
      await writeFile(join(home.folder, 'port'), `${port}\n`, { mode: 0o600 });
      await giveToOwner(home, join(home.folder, 'port'));
      return { pid, port, password, attached: false };
    }
    const words = await logTail(home, start);
    if (
      /could not create any TCP\/IP sockets|Address already in use/.test(words) &&
      attempt < PORT_ATTEMPTS
    ) {
      attempt += 1;
      port = null;
    } else if (
      /postmaster\.pid" already exists|pre-existing shared memory block/.test(words) &&
      Date.now() < orphansGone
    ) {
      await sleep(50);
      const running = await attach(cluster, password, options.report);
      if (running !== null) return { ...running, attached: true };
    } else {
      throw damaged(cluster, 'the server does not start', words);
    }
  }
}

/** Its pid when it takes connections, null when it has ended. A start that fails leaves no server behind. */
async function becomesReady(options: LaunchOptions, cluster: string, port: number): Promise<number | null> {
  const child = await spawnServer(options, cluster, port);
  try {
    return await waitUntilReady(child, options, cluster, port);
  } catch (error) {
    if (child.pid !== undefined) await stopServer(cluster, child.pid);
    throw error;
  }
}

async function waitUntilReady(
  child: ChildProcess,
  options: LaunchOptions,
  cluster: string,
  port: number,
): Promise<number | null> {
  const begin = Date.now();
  for (let told = false; child.exitCode === null && child.signalCode === null; await sleep(10)) {
    const file = await readPidFile(cluster);
    if (file !== null && file.pid === child.pid && file.status === 'ready') {
      if (await answers({ pid: file.pid, port, password: options.password })) return file.pid;
    }
    const waited = Date.now() - begin;
    if (waited > STARTUP_TIMEOUT) {
      throw damaged(
        cluster,
        `the server is not ready after ${STARTUP_TIMEOUT / 1000} s`,
        await logTail(options.home),
      );
    }
    if (!told && waited > 3_000) options.report('Postgres is recovering from its last end');
    told ||= waited > 3_000;
  }
  return null;
}

async function spawnServer(
  { home, native, fsync }: LaunchOptions,
  cluster: string,
  port: number,
): Promise<ChildProcess> {
  const settings = { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '' };
  if (!fsync) Object.assign(settings, { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' });
  const args = [
    '-D',
    cluster,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const program = join(native, 'bin', 'postgres');
  const log = await openLog(home);
  try {
    return await new Promise<ChildProcess>((resolve, reject) => {
      const child = spawn(program, args, {
        cwd: '/',
        env: CHILD_ENVIRONMENT,
        stdio: ['ignore', log.fd, log.fd],
        detached: true, // A session of its own: Ctrl-C is for us, and we stop the server after the last row.
        ...home.account,
      });
      child.once('error', (error) => reject(cannotRun(program, error)));
      child.once('spawn', () => resolve(child));
      child.unref();
    });
  } finally {
    await log.close();
  }
}

const logFile = (home: PostgresHome) => join(home.folder, 'server.log');

/** One older log is kept. The server inherits the descriptor: it needs no right to our folder. */
async function openLog(home: PostgresHome) {
  const file = logFile(home);
  if (((await ifThere(stat(file)))?.size ?? 0) > LOG_LIMIT) await rename(file, `${file}.1`);
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants;
  const log = await open(file, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600);
  await giveToOwner(home, file);
  return log;
}

/** The last lines of the server's log, from this byte on. */
export async function logTail(home: PostgresHome, from = 0): Promise<string> {
  const bytes = await ifThere(readFile(logFile(home)));
  return (bytes ?? Buffer.alloc(0))
    .subarray(from <= (bytes?.length ?? 0) ? from : 0)
    .toString('utf8')
    .trim()
    .split('\n')
    .slice(-15)
    .join('\n');
}

async function rememberedPort(home: PostgresHome): Promise<number | null> {
  const port = Number(await ifThere(readFile(join(home.folder, 'port'), 'utf8')));
  return port > 1023 && port < 65536 && (await isFree(port)) ? port : null;
}

/** Below the ephemeral range (Linux from 32768, macOS from 49152): no outgoing connection takes it by chance. */
async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(16_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new EmbeddedPostgresError(`no free port for Postgres on 127.0.0.1; ${USE_ANOTHER}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

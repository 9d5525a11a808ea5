import { randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedPostgresError, ifThere, USE_ANOTHER } from './embedded-postgres-error.js';
import { damaged, run } from './cluster.js';
import { responds, type Server } from './connection.js';
import { giveToOwner, type PostgresHome } from './home.js';
import { isAlive, isServerOf, readPidFile, stopServer } from './server-process.js';
import { patience } from '../platform/patience.js';

export interface LaunchOptions {
  home: PostgresHome;
  native: string;
  password: string;
  fsync: boolean;
  report: (line: string) => void;
}

/** Crash recovery replays up to max_wal_size (1 GB). */
const STARTUP_TIMEOUT = patience('the start of an embedded Postgres', 300_000);
/** How long the processes of a killed server may take to notice that it is gone. */
const ORPHANS_TIMEOUT = patience('processes of an embedded Postgres', 15_000);
const PORT_ATTEMPTS = 20;
const LOG_LIMIT = 4 * 1024 * 1024;

/** The server of this cluster that runs already; null when there is none. A stranger's pid file is removed. */
export async function attach(
  cluster: string,
  password: string,
  report: (line: string) => void,
): Promise<Server | null> {
  const deadline = Date.now() + STARTUP_TIMEOUT.ms;
  for (let reported = false; ; await sleep(20)) {
    const file = await readPidFile(cluster);
    if (file === null) return null;
    if (!(await isServerOf(file.pid, cluster))) {
      // Postgres takes any living process of its own user with this pid for the server, and would not start.
      // The file of a dead one it judges better: by the shared memory that file names.
      if (isAlive(file.pid)) await rm(join(cluster, 'postmaster.pid'), { force: true });
      return null;
    }
    const server = { pid: file.pid, port: file.port, password };
    if (file.status === 'ready' && (await responds(server))) return server;
    if (Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        `the server in ${cluster} (pid ${file.pid}) is ${file.status} for too long; end it and start again`,
      );
    }
    if (!reported) report(`waiting for the Postgres that is ${file.status} (pid ${file.pid})`);
    reported = true;
  }
}

/** Starts the server, on another port where the last one is taken. */
export async function launch(options: LaunchOptions): Promise<Server & { attached: boolean }> {
  const { home, password } = options;
  const cluster = join(home.folder, 'cluster');
  const orphansGone = Date.now() + ORPHANS_TIMEOUT.ms;
  let port = await rememberedPort(home);
  for (let attempt = 1; ;) {
    // Below the ephemeral range (Linux from 32768, macOS from 49152): no outgoing connection takes it by chance.
    port ??= randomInt(16_000, 32_000);
    const start = (await ifThere(stat(logFile(home))))?.size ?? 0;
    const pid = await startServer(options, cluster, port);
    if (pid !== null) {
      await writeFile(join(home.folder, 'port'), `${port}\n`, { mode: 0o600 });
      await giveToOwner(home, join(home.folder, 'port'));
      return { pid, port, password, attached: false };
    }
    const words = await logTail(home, start);
    if (/could not create any TCP\/IP sockets|Address already in use/.test(words)) {
      if (attempt === PORT_ATTEMPTS)
        throw new EmbeddedPostgresError(`no free port for Postgres on 127.0.0.1; ${USE_ANOTHER}`);
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

/**
 * Starts the server with pg_ctl, which waits until it takes connections and gives it a session of its own: Ctrl-C is
 * for us, and we stop the server after the last row.
 *
 * @returns its pid; null when it has ended, for a reason that its log names
 */
async function startServer(
  { home, native, fsync, report }: LaunchOptions,
  cluster: string,
  port: number,
): Promise<number | null> {
  const settings = { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '' };
  if (!fsync) Object.assign(settings, { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' });
  const serverArgs = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const args = ['start', '--silent', '--wait', `--timeout=${STARTUP_TIMEOUT.ms / 1000}`];
  // pg_ctl has a shell start the server and does not escape the folder of its own -D: so it gets that from PGDATA, and
  // the server, which isServerOf() knows by this argument, gets it here.
  args.push('-o', ['-D', cluster, ...serverArgs].map(quoted).join(' '));
  const log = await openLog(home);
  const slow = setTimeout(() => report('Postgres is recovering after an unclean shutdown'), 3_000);
  const begin = Date.now();
  try {
    const { code } = await run(join(native, 'bin', 'pg_ctl'), args, home, { PGDATA: cluster }, log.fd);
    const pid = (await readPidFile(cluster))?.pid;
    if (code === 0 && pid !== undefined) return pid;
    if (Date.now() - begin < STARTUP_TIMEOUT.ms) return null;
    if (pid !== undefined) await stopServer(cluster, pid);
  } finally {
    clearTimeout(slow);
    await log.close();
  }
  const what = `the server is not ready after ${STARTUP_TIMEOUT.ms / 1000} s`;
  throw damaged(cluster, what, await logTail(home));
}

/** One word for a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
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
  return port > 1023 && port < 65536 ? port : null;
}

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from './eventually.js';
import { unusedPort } from './unused-port.js';

/** PGBOUNCER names another than the installed one; null: none is installed. */
export const PGBOUNCER = (() => {
  if (process.env.PGBOUNCER) return process.env.PGBOUNCER;
  try {
    return execFileSync('sh', ['-c', 'command -v pgbouncer || ls /usr/sbin/pgbouncer']).toString().trim();
  } catch {
    return null;
  }
})();

export interface Pooler {
  /** Of the same database, through the pooler. */
  readonly url: string;
  /** What it has written. */
  readonly log: () => string;
  /** Ends at once, as on `kill -9`. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** From now on, its connections lead to the same database of another server. */
  lead(databaseUrl: string): Promise<void>;
  /** As on `kill -STOP` and `kill -CONT`. */
  freeze(isFrozen: boolean): void;
  readonly version: string;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

/** PgBouncer with its defaults before a database. */
export async function startPooler(databaseUrl: string, mode: 'transaction' | 'session'): Promise<Pooler> {
  const real = new URL(databaseUrl);
  const port = await unusedPort();
  const folder = await mkdtemp(join(tmpdir(), 'postern-pgbouncer-'));
  await chmod(folder, 0o755);
  const name = real.pathname.slice(1);
  const configure = ({ hostname, port: to, username, password }: URL) =>
    writeFile(
      join(folder, 'pgbouncer.ini'),
      `[databases]
${name} = host=${hostname} port=${to || 5432} dbname=${name} user=${username} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${mode === 'session' ? 60 : 5}
`,
    );
  await configure(real);
  const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  let running: ChildProcess | null = null;
  let log = '';
  const kill = async () => {
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, 'exit');
    running.kill('SIGKILL');
    await ended;
  };
  const start = async () => {
    running = spawn(PGBOUNCER!, [join(folder, 'pgbouncer.ini')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...account,
    });
    running.stderr!.on('data', (text: Buffer) => (log += text.toString()));
    await eventually(() => isAnswering(url.href));
  };
  await start();
  return {
    url: url.href,
    log: () => log,
    kill,
    start,
    lead: async (to) => {
      await configure(new URL(to));
      // Reads its settings again.
      running!.kill('SIGHUP');
    },
    freeze: (isFrozen) => void running!.kill(isFrozen ? 'SIGSTOP' : 'SIGCONT'),
    version: execFileSync(PGBOUNCER!, ['--version']).toString().split('\n')[0]!,
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function isAnswering(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

import { chown, cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from './eventually.js';
import { queryOnce } from './query-once.js';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/embedded-postgres/embedded-postgres.js';

/** A Postgres of a test's own, to be stopped, killed and frozen. It comes back on the same address. */
export class LogCluster {
  private crowd: pg.Client[] = [];

  private constructor(
    private readonly dataDir: string,
    private server: EmbeddedPostgres,
  ) {}

  static async start(): Promise<LogCluster> {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-cluster-'));
    return new LogCluster(dataDir, await startEmbeddedPostgres({ dataDir, fsync: false }));
  }

  get url(): string {
    return this.server.url;
  }

  query<T extends object>(text: string, values?: unknown[]): Promise<T[]> {
    return queryOnce(this.url, text, values);
  }

  /** Its data. */
  get folder(): string {
    return join(this.server.folder, 'cluster');
  }

  stop(): Promise<void> {
    return this.server.stop();
  }

  async begin(): Promise<void> {
    this.server = await startEmbeddedPostgres({ dataDir: this.dataDir, fsync: false });
  }

  /** Its user gets this password. */
  async setPassword(password: string): Promise<void> {
    await this.query(`ALTER ROLE ${new URL(this.url).username} PASSWORD '${password}'`);
    await writeFile(join(this.server.folder, 'password'), `${password}\n`);
    await this.stop();
    await this.begin();
  }

  /** An asynchronous standby of this server, which receives what is written from now on. */
  async standby(): Promise<LogCluster> {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-cluster-'));
    const folder = join(dataDir, 'postgres');
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    await client.query(`SELECT pg_backup_start('standby', true)`);
    // Files may vanish while they are copied.
    for (let tries = 1; ; tries++) {
      try {
        await cp(this.server.folder, folder, { recursive: true, preserveTimestamps: true, force: true });
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === 10) throw error;
      }
    }
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    await client.end();
    const cluster = join(folder, 'cluster');
    const { hostname, port, username, password } = new URL(this.url);
    const from = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
    await writeFile(join(cluster, 'backup_label'), rows[0]!.labelfile);
    await writeFile(join(cluster, 'standby.signal'), '');
    await writeFile(join(cluster, 'postgresql.auto.conf'), `primary_conninfo = '${from}'\n`);
    for (const name of ['postmaster.pid', 'postmaster.opts']) await rm(join(cluster, name), { force: true });
    for (const name of ['port', 'location', 'lock'])
      await rm(join(folder, name), { force: true, recursive: true });
    await giveLike(this.server.folder, folder);
    return new LogCluster(dataDir, await startEmbeddedPostgres({ dataDir, fsync: false }));
  }

  /** A standby receives nothing from now on. */
  async freeze(): Promise<void> {
    await this.query(`ALTER SYSTEM SET primary_conninfo = ''`);
    await this.query('SELECT pg_reload_conf()');
    await eventually(async () => (await this.query('SELECT FROM pg_stat_wal_receiver')).length === 0);
  }

  /** A standby accepts writes from now on. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote(true, 60)');
  }

  /** The server and all its processes, as the machine's own kill or pause would hit them. */
  async signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const postmaster = await this.pid();
    // First, so that it makes no process that is not listed.
    process.kill(postmaster, 'SIGSTOP');
    for (const pid of [...(await childrenOf(postmaster)), postmaster]) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // The process of a connection that has ended by now.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }

  /** Takes every connection there is, and breaks the log writer's, so that it finds none. */
  async crowdOut(): Promise<void> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    this.crowd = [client];
    const take = async (): Promise<boolean> => {
      const next = new pg.Client({ connectionString: this.url });
      next.on('error', () => {});
      return next.connect().then(
        () => {
          this.crowd.push(next);
          return true;
        },
        () => false,
      );
    };
    while (await take());
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postern-log'`;
    // Takes the log writer's place too. If the writer reconnects first, it is ended again.
    if ((await client.query(terminate)).rowCount !== 0)
      await eventually(async () => {
        await client.query(terminate);
        return take();
      });
  }

  async disperse(): Promise<void> {
    await Promise.all(this.crowd.map((client) => client.end()));
    this.crowd = [];
  }

  async remove(): Promise<void> {
    await this.server.stop();
    await rm(this.dataDir, { recursive: true, force: true });
    await rm(this.server.folder, { recursive: true, force: true });
  }

  /** Of the postmaster. */
  async pid(): Promise<number> {
    const file = await readFile(join(this.folder, 'postmaster.pid'), 'utf8');
    return Number(file.split('\n')[0]);
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids: number[] = [];
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    // The parent's pid follows the name in brackets and the state (proc_pid_stat(5)).
    if (Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]) === parent) pids.push(Number(name));
  }
  return pids;
}

/** Gives a copied tree the owners of what it was copied from: cp() makes it ours. */
async function giveLike(from: string, to: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const names = await readdir(to, { recursive: true });
  for (const name of ['.', ...names]) {
    const owner = await stat(join(from, name)).catch(() => stat(join(from, 'cluster')));
    await chown(join(to, name), owner.uid, owner.gid);
  }
}

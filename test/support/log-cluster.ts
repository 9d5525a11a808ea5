import { readdir, readFile, rm } from 'node:fs/promises';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
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

  async query<T extends object>(text: string, values?: unknown[]): Promise<T[]> {
    const client = new pg.Client({ connectionString: this.url });
    // Postgres may be killed: the query rejects.
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query<T>(text, values)).rows;
    } finally {
      await client.end();
    }
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

  /** The server and all its processes, as the machine's own kill or pause would hit them. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    for (const pid of await this.pids()) {
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
    for (;;) {
      const next = new pg.Client({ connectionString: this.url });
      next.on('error', () => {});
      try {
        await next.connect();
      } catch {
        break;
      }
      this.crowd.push(next);
    }
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postern-log'`;
    await client.query(terminate);
    // The place it left is taken too, before it comes back.
    const last = new pg.Client({ connectionString: this.url });
    last.on('error', () => {});
    await last.connect().then(
      () => this.crowd.push(last),
      () => {},
    );
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

  private async pids(): Promise<number[]> {
    const postmaster = await this.pid();
    const pids = [postmaster];
    for (const name of await readdir('/proc')) {
      const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
      // The parent's pid follows the name in brackets and the state (proc_pid_stat(5)).
      if (Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]) === postmaster) pids.push(Number(name));
    }
    return pids;
  }
}

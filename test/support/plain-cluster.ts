import { execFile } from 'node:child_process';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { queryOnce } from './query-once.js';
import { unusedPort } from './unused-port.js';
import type { PostgresMajor } from './postgres-majors.js';

const run = promisify(execFile);
const NAME = 'postern';
const PASSWORD = 'a-password-of-a-test';
/** Postgres does not run as root. */
const ACCOUNT = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** A Postgres of a major version, with the programs of an installation. */
export class PlainCluster {
  private readonly data: string;

  private constructor(
    private readonly folder: string,
    private readonly version: PostgresMajor,
    private readonly port: number,
    private readonly environment: Record<string, string>,
  ) {
    this.data = join(folder, `data-${version.major}`);
  }

  /** @param environment of the server */
  static async make(version: PostgresMajor, environment: Record<string, string> = {}): Promise<PlainCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'postern-plain-'));
    await chmod(folder, 0o755);
    if (ACCOUNT.uid !== undefined) await chown(folder, ACCOUNT.uid, ACCOUNT.gid);
    const cluster = new PlainCluster(folder, version, await unusedPort(), environment);
    await writeFile(join(folder, 'password'), PASSWORD);
    const args = ['-D', cluster.data, '-U', NAME, `--pwfile=${join(folder, 'password')}`, '--no-sync'];
    args.push('-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C');
    // The default since 18; pg_upgrade asks for the same in both.
    if (version.major >= 18) args.push('--no-data-checksums');
    await cluster.run('initdb', args);
    return cluster;
  }

  get url(): string {
    return `postgres://${NAME}:${PASSWORD}@127.0.0.1:${this.port}/${NAME}`;
  }

  get major(): number {
    return this.version.major;
  }

  async begin(): Promise<void> {
    const options = `-p ${this.port} -k ${this.folder} -c listen_addresses=127.0.0.1 -c fsync=off`;
    await this.run('pg_ctl', ['start', '-w', '-D', this.data, '-l', join(this.folder, 'log'), '-o', options]);
  }

  async makeDatabase(): Promise<void> {
    const client = new pg.Client({ connectionString: this.url.replace(/[^/]*$/, 'template1') });
    await client.connect();
    await client.query(`CREATE DATABASE ${NAME}`);
    await client.end();
  }

  async stop(): Promise<void> {
    await this.run('pg_ctl', ['stop', '-w', '-m', 'fast', '-D', this.data]);
  }

  /** A new cluster with the data of this one, which is stopped, by pg_upgrade. */
  async upgrade(version: PostgresMajor): Promise<PlainCluster> {
    const next = await PlainCluster.make(version, this.environment);
    const args = ['-b', this.version.bin, '-B', version.bin, '-d', this.data, '-D', next.data, '-U', NAME];
    await next.run('pg_upgrade', [...args, '-p', String(this.port), '-P', String(next.port), '--no-sync'], {
      PGPASSWORD: PASSWORD,
    });
    return next;
  }

  query<T extends object>(text: string, values?: unknown[]): Promise<T[]> {
    return queryOnce(this.url, text, values);
  }

  async remove(): Promise<void> {
    await this.stop().catch(() => {});
    await rm(this.folder, { recursive: true, force: true });
  }

  private async run(name: string, args: string[], env: Record<string, string> = {}): Promise<void> {
    const program = join(this.version.bin, name);
    // pg_ctl leaves the server, which would hold on to a pipe.
    const environment = { ...process.env, ...this.environment, ...env };
    const options = { ...ACCOUNT, cwd: this.folder, env: environment };
    const quoted = [program, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    const output = join(this.folder, 'output');
    await run('sh', ['-c', `${quoted} >>${output} 2>&1`], options).catch(async (error: unknown) => {
      throw new Error(`${name} failed: ${(await run('tail', ['-40', output])).stdout}`, { cause: error });
    });
  }
}

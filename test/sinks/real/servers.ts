import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Process } from '../../support/process.js';
import { unusedPort } from '../../support/unused-port.js';

const NATS_SERVER = 'github.com/nats-io/nats-server/v2@v2.15.2';
const CHDB = 'chdb==4.4.0';
/** Outside of the working copy, so that it is installed once for all of them. */
const INSTALLED = process.env.POSTERN_SINK_SERVERS ?? join(homedir(), '.cache', 'postern-sink-servers');
const FRONT = resolve(__dirname, 'clickhouse-front.py');

/** Installs the servers unless they are there: with `go install`, and with pip in an environment of its own. */
export function installServers(): { nats: string; python: string } {
  mkdirSync(INSTALLED, { recursive: true });
  const nats = join(INSTALLED, 'nats-server');
  const options = { stdio: 'inherit' as const, timeout: 1_200_000 };
  if (!existsSync(nats))
    execFileSync('go', ['install', NATS_SERVER], { ...options, env: { ...process.env, GOBIN: INSTALLED } });
  const python = join(INSTALLED, 'venv', 'bin', 'python');
  if (!existsSync(join(INSTALLED, 'venv', 'bin', 'pip')))
    execFileSync('python3', ['-m', 'venv', join(INSTALLED, 'venv')], options);
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', CHDB], options);
  return { nats, python };
}

/** A server that can be killed and started again on the same port and files. */
export class SinkServer {
  process!: Process;

  private constructor(
    readonly port: number,
    readonly folder: string,
    private readonly command: readonly string[],
    private readonly ready: RegExp,
  ) {}

  static async clickhouse(python: string): Promise<SinkServer> {
    const [port, folder] = [await unusedPort(), await mkdtemp(join(tmpdir(), 'postern-chdb-'))];
    return new SinkServer(port, folder, [python, FRONT, folder, String(port)], /listening/).start();
  }

  static async nats(program: string): Promise<SinkServer> {
    const [port, folder] = [await unusedPort(), await mkdtemp(join(tmpdir(), 'postern-nats-'))];
    const command = [program, '-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder];
    return new SinkServer(port, folder, command, /Server is ready/).start();
  }

  async start(): Promise<this> {
    const [program, ...args] = this.command;
    this.process = new Process(program!, args, { cwd: this.folder });
    await this.process.until(this.ready);
    return this;
  }

  async killed(): Promise<void> {
    await this.process.kill();
    await this.start();
  }

  async remove(): Promise<void> {
    await this.process.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

// The files and processes of a run. All are removed at its end, however it ends.
import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, realpath, rm, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pinned } from './pinning.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** statfs(2) types that live in memory: tmpfs and ramfs. A journal there would be measured without its disk. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);
/** A bound for what hangs, not a measure: the machine may be busy with other things. */
const START_MS = 200_000;
const STOP_MS = 20_000;

export class Workplace {
  closers = [];
  ports = new Set();

  constructor(folder, cores) {
    this.folder = folder;
    this.cores = cores;
  }

  static async make(cores) {
    for (const parent of [tmpdir(), '/var/tmp', join(root, 'bench', 'results')]) {
      if (IN_MEMORY.has((await statfs(parent).catch(() => ({ type: 0x01021994 }))).type)) continue;
      const folder = await realpath(await mkdtemp(join(parent, 'postern-bench-')));
      // Open to the account that Postgres runs as when this runs as root.
      await chmod(folder, 0o755);
      return new Workplace(folder, cores);
    }
    throw new Error('no folder on a disk was found; set TMPDIR to one');
  }

  async subfolder(name) {
    const folder = join(this.folder, name);
    await mkdir(folder, { recursive: true });
    return folder;
  }

  /** `closer` runs at the end, or when the returned function is called, once. */
  onClose(closer) {
    let done = null;
    const once = () => (done ??= Promise.resolve().then(closer));
    this.closers.push(once);
    return once;
  }

  async close() {
    const errors = [];
    for (const closer of this.closers.splice(0).reverse())
      await closer().catch((error) => errors.push(error));
    await rm(this.folder, { recursive: true, force: true });
    if (errors.length > 0) throw errors[0];
  }

  /**
   * Starts a process and waits until `ready` finds something in what it prints, or, without `ready`, until it listens on
   * `port`. `cores`: where it runs. Ends with the run.
   */
  async start(command, { cores, ready, port, env = {}, cwd = this.folder, name = command[0] }) {
    const [program, ...args] = pinned(cores, command);
    const child = spawn(program, args, {
      cwd,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: this.folder, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let printed = '';
    let over = null;
    const ended = new Promise((resolve) => {
      child.once('error', (error) => resolve((over = error.message)));
      child.once('close', (code, signal) => resolve((over = `exit code ${code ?? signal}`)));
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (printed = (printed + text).slice(-65_536)));
    }
    const stop = this.onClose(async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(timer);
    });
    for (const deadline = performance.now() + START_MS; ; await sleep(20)) {
      const found = ready ? ready(printed) : (await canConnect(port)) && {};
      if (found) return { pid: child.pid, found, stop, printed: () => printed };
      if (over !== null) throw new Error(`${name} did not start (${over}):\n${printed}`);
      if (performance.now() > deadline)
        throw new Error(`${name} is not ready after ${START_MS / 1_000} s:\n${printed}`);
    }
  }

  /** A port nobody listens on, given once. */
  async freePort() {
    for (;;) {
      const port = await new Promise((resolve, reject) => {
        const server = createServer().once('error', reject);
        server.listen(0, '127.0.0.1', () => {
          const { port } = server.address();
          server.close(() => resolve(port));
        });
      });
      if (!this.ports.has(port)) {
        this.ports.add(port);
        return port;
      }
    }
  }
}

async function canConnect(port) {
  const { connect } = await import('node:net');
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => socket.destroy() && resolve(true));
    socket.once('error', () => resolve(false));
  });
}

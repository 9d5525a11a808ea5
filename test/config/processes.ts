import { type ChildProcess, spawn } from 'node:child_process';
import { realpathSync, statSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { temporaryFolder } from './temporary-folder.js';

/**
 * Real processes for tests about locks, kills and users, who may not enter the clone: the few files needed are copied to a
 * temporary folder, compiled as these tests are.
 */
const ROOT = resolve(__dirname, '../..');
const FOLDERS = ['platform', 'embedded-postgres'];

export async function compileSources(): Promise<string> {
  const folder = await temporaryFolder();
  await chmod(folder, 0o755);
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const room of FOLDERS) {
    const compiled = join(ROOT, '.test-build/src', room);
    await mkdir(join(folder, room));
    for (const name of (await readdir(compiled)).filter((file) => file.endsWith('.js')))
      await copyFile(join(compiled, name), join(folder, room, name));
  }
  return folder;
}

export interface Account {
  uid: number;
  gid: number;
}

export class Child {
  readonly output: string[] = [];
  readonly ended: Promise<number | string>;
  private readonly process: ChildProcess;
  private waiting: (() => void)[] = [];

  constructor(compiled: string, code: string, account: Account | null = null) {
    this.process = spawn(process.execPath, ['--input-type=module', '-e', code], {
      cwd: compiled,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...account,
    });
    let rest = '';
    const read = (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      this.output.push(...lines);
      this.wake();
    };
    for (const stream of [this.process.stdout, this.process.stderr])
      stream?.setEncoding('utf8').on('data', read);
    this.ended = new Promise((done) => {
      this.process.on('close', (status, signal) => {
        done(status ?? signal ?? 'unknown');
        this.wake();
      });
    });
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** The first line with this beginning; the rest of it. Fails when the process ends without. */
  async line(beginning: string): Promise<string> {
    for (;;) {
      const found = this.output.find((line) => line.startsWith(beginning));
      if (found !== undefined) return found.slice(beginning.length);
      if (this.process.exitCode !== null || this.process.signalCode !== null) {
        await this.ended;
        const last = this.output.find((line) => line.startsWith(beginning));
        if (last !== undefined) return last.slice(beginning.length);
        throw new Error(`the process ended without "${beginning}":\n${this.output.join('\n')}`);
      }
      await new Promise<void>((wake) => this.waiting.push(wake));
    }
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.ended;
  }

  private wake(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }
}

export const isRoot = process.getuid?.() === 0;

/** A clone or a Node below /root cannot be entered by an ordinary user, nor can such a user run tests there. */
export const ordinaryUserCanRunNode = [dirname(process.execPath), join(ROOT, 'node_modules')].every(
  (folder) => {
    for (let at = realpathSync(folder); ; at = dirname(at)) {
      if ((statSync(at).mode & 0o001) === 0) return false;
      if (at === dirname(at)) return true;
    }
  },
);

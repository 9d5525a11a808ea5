import { execFile } from 'node:child_process';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EmbeddedPostgresError, ifThere } from './embedded-postgres-error.js';

/** What the server writes about itself to `postmaster.pid` (src/include/utils/pidfile.h). */
export interface PidFile {
  pid: number;
  port: number;
  /** `starting`, `ready`, `stopping`, … */
  status: string;
}

/** Fast shutdown writes a checkpoint; after this many ms the immediate one, which recovers at the next start. */
const FAST_SHUTDOWN = 60_000;
const IMMEDIATE_SHUTDOWN = 10_000;

export async function readPidFile(cluster: string): Promise<PidFile | null> {
  const text = await ifThere(readFile(join(cluster, 'postmaster.pid'), 'utf8'));
  const lines = text?.split('\n') ?? [];
  // A standalone backend writes a negative pid.
  const pid = Math.abs(Number(lines[0]));
  return pid > 0 ? { pid, port: Number(lines[3]), status: lines[7]?.trim() ?? 'starting' } : null;
}

/**
 * Is this process a server of this cluster? The pid alone says little: after a container's restart, or a while,
 * it may be anybody's. Command lines are readable without ptrace rights, unlike /proc/<pid>/cwd. A zombie has none.
 */
export async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  if (await isReadable('/proc/self/cmdline')) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return line.split('\0').includes(cluster);
  }
  const ps = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }));
  return ps.stdout.includes(cluster);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function isReadable(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/**
 * Fast shutdown (SIGINT: clients are disconnected, a checkpoint is written), waited for.
 * @param pid stopped only if it is a server of this cluster
 */
export async function stopServer(cluster: string, pid: number): Promise<void> {
  if (!(await isServerOf(pid, cluster))) return;
  for (const [signal, patience] of [
    ['SIGINT', FAST_SHUTDOWN],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw error;
    }
    for (const deadline = Date.now() + patience; Date.now() < deadline; await sleep(10)) {
      if (!(await isServerOf(pid, cluster))) return;
    }
  }
  throw new EmbeddedPostgresError(`the server in ${cluster} (pid ${pid}) does not stop; end it by hand`);
}

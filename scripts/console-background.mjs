// Builds the console while the gateway serves: in another process of the lowest priority, whose messages go to a file.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

const LOG = join('console', '.build.log');

/** @returns `stop` ends the build if it still runs */
export function buildConsoleInBackground() {
  if (!existsSync(join(root, 'console', 'package.json'))) return { stop: () => {} };
  const log = openSync(join(root, LOG), 'w');
  const isPosix = process.platform !== 'win32';
  let isStopped = false;
  const child = spawn(process.execPath, [join(root, 'scripts', 'console.mjs')], {
    cwd: root,
    stdio: ['ignore', log, log],
    // Leads a process group, so that what it starts ends with it.
    detached: isPosix,
  });
  closeSync(log);
  const tell = (why) => {
    if (isStopped) return;
    console.error(
      `postern: the console could not be built (${why}); see ${LOG}. The gateway is not affected.`,
    );
  };
  child.once('error', (error) => tell(error.message));
  child.once('exit', (code, signal) => {
    if (code !== 0) tell(signal ?? `exit code ${code}`);
  });
  // Its own children inherit it.
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  const stop = () => {
    isStopped = true;
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    if (!isPosix) return void child.kill();
    try {
      process.kill(-child.pid, 'SIGTERM');
    } catch (error) {
      // It has just ended, and this process has not been told yet.
      if (error.code !== 'ESRCH') throw error;
    }
  };
  process.once('exit', stop);
  return { stop };
}

// One start at a time may write node_modules and dist; the others wait and then find the work done.
// Plain Node: this runs before node_modules exists.
import { readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const HEARTBEAT_MS = 5_000;
// Far above the heartbeat: a laptop that slept or a starved machine is no reason to break into a running install.
const ABANDONED_MS = 60_000;
const POLL_MS = 200;

/** Runs `work` while holding the lock file `path`; `onWait` is called once if another process holds it. */
export async function withLock(path, work, onWait) {
  const me = `${process.pid} ${hostname()}\n`;
  for (let waited = false; !tryTake(path, me);) {
    const holder = read(path);
    // None: just released, or left by a start that was killed and now removed.
    if (holder !== undefined && !waited) {
      onWait(holder.split(' ')[0]);
      waited = true;
    }
    await sleep(POLL_MS);
  }
  const heartbeat = setInterval(() => touch(path), HEARTBEAT_MS);
  const release = () => {
    clearInterval(heartbeat);
    if (read(path) === me) rmSync(path, { force: true });
  };
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

function tryTake(path, me) {
  try {
    writeFileSync(path, me, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const holder = read(path);
  if (holder !== undefined && isAbandoned(path, holder)) removeExactly(path, holder);
  return false;
}

/** Killed without a chance to clean up: gone on this machine, or silent for long on another (shared folders). */
function isAbandoned(path, holder) {
  const [pid, host] = holder.trim().split(' ');
  if (host === hostname() && Number(pid) > 0) {
    try {
      process.kill(Number(pid), 0);
    } catch (error) {
      if (error.code === 'ESRCH') return true;
    }
  }
  try {
    return Date.now() - statSync(path).mtimeMs > ABANDONED_MS;
  } catch {
    return false; // released in the meantime
  }
}

/** Rename first: of several waiters that saw the same dead holder exactly one gets the file. */
function removeExactly(path, holder) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return; // another waiter was faster
  }
  if (read(aside) === holder) rmSync(aside, { force: true });
  else renameSync(aside, path); // a new holder took it between the look and the rename: give it back
}

function touch(path) {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // Somebody removed the lock by hand; the work goes on, there is nothing to keep alive.
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

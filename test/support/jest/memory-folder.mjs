import { chmod, mkdtemp, readdir, rm, statfs } from 'node:fs/promises';

const SHARED_MEMORY = '/dev/shm';
const PREFIX = 'postern-test-';
/** Linux's name of tmpfs (statfs(2)). */
const TMPFS = 0x01021994;
const NEEDED_BYTES = 4e9;

/**
 * Makes a folder in memory for the temporary files of a run. Most of the disk's work in a run is waiting for fsync, which
 * two dozen databases and as many journals call all the time.
 *
 * @returns its path; null where there is no tmpfs with enough space, such as in a container with Docker's default of 64 MB
 */
export async function makeMemoryFolder() {
  const { type, bavail, bsize } = await statfs(SHARED_MEMORY).catch(() => ({}));
  if (type !== TMPFS || bavail * bsize < NEEDED_BYTES) return null;
  await removeLeftovers();
  const folder = await mkdtemp(`${SHARED_MEMORY}/${PREFIX}${process.pid}-`);
  // Open to the account that Postgres runs as when the tests run as root.
  await chmod(folder, 0o755);
  return folder;
}

/** What killed runs have left would take memory until the next boot. */
export async function removeLeftovers() {
  for (const name of await readdir(SHARED_MEMORY)) {
    const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split('-')[0]) : NaN;
    if (pid > 0 && !isAlive(pid)) await rm(`${SHARED_MEMORY}/${name}`, { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

import { createHash } from 'node:crypto';
import { type Stats } from 'node:fs';
import { chmod, chown, mkdir, readFile, realpath, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createOnce } from '../platform/create-once.js';
import { codeOf, EmbeddedPostgresError, ifThere, USE_ANOTHER } from './embedded-postgres-error.js';
import { readPidFile, stopServer } from './server-process.js';

/** An unprivileged user of this machine: Postgres does not run as root. */
export interface Account {
  uid: number;
  gid: number;
}

export interface PostgresHome {
  /** Holds `cluster/`, `password`, `port` and `server.log`. */
  folder: string;
  /** The account that the server runs as; null: that of this process. */
  account: Account | null;
}

/** The folder of clusters that cannot be in their DATA_DIR. */
const SYSTEM_FOLDER = '/var/lib/postern';

/**
 * Decides on the folder of a DATA_DIR's cluster and the account of its server, and makes that folder.
 * A cluster that exists decides both: choosing again would show an empty database where there was a full one.
 * The caller holds the lock of placesOf().
 */
export async function postgresHome(dataDir: string, report: (line: string) => void): Promise<PostgresHome> {
  const { inside, pointer } = placesOf(dataDir);
  const existing = await ifThere(stat(join(inside, 'cluster')));
  const uid = process.getuid?.();
  if (uid !== 0) {
    if (existing !== null && uid !== undefined && existing.uid !== uid) throw notOurs(inside, existing.uid);
    return { folder: inside, account: null };
  }

  const elsewhere = (await ifThere(readFile(pointer, 'utf8')))?.trim() ?? null;
  if (existing === null && elsewhere !== null) return existingElsewhere(dataDir, elsewhere, report);
  const account = existing === null ? await accountFor(dataDir) : { uid: existing.uid, gid: existing.gid };
  if ((await letIn(dataDir, account)) && (await canEnter(dataDir, account))) {
    await makeHome(inside, account);
    return { folder: inside, account };
  }
  if (existing === null) return newElsewhere(dataDir, account, report);
  throw new EmbeddedPostgresError(
    `the server runs as user ${account.uid}, who cannot enter ${dataDir}; ` +
      `make the folders above it searchable (chmod o+x), or ${USE_ANOTHER}`,
  );
}

/** @param dataDir absolute, without symbolic links */
export function placesOf(dataDir: string) {
  const inside = join(dataDir, 'postgres');
  return {
    inside,
    /** Starters and stoppers take turns by this lock, wherever the cluster is. */
    lock: join(inside, 'lock'),
    /** Holds the path of the cluster's home when that is elsewhere: so a DATA_DIR may be moved. */
    pointer: join(inside, 'location'),
  };
}

/** Makes `postgres/` and the lock's folder below it. */
export async function makePlaces(dataDir: string): Promise<void> {
  const { inside, lock } = placesOf(dataDir);
  try {
    const owner = await stat(dataDir);
    for (const folder of [inside, lock]) {
      const made = await mkdir(folder, { recursive: true, mode: 0o700 });
      if (made !== undefined && process.getuid?.() === 0) await chown(folder, owner.uid, owner.gid);
    }
  } catch (error) {
    if (codeOf(error) !== 'EACCES' && codeOf(error) !== 'EPERM') throw error;
    throw notOurs(inside, ((await ifThere(stat(inside))) ?? (await stat(dataDir))).uid);
  }
}

function notOurs(folder: string, owner: number): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `the database in ${folder} belongs to user ${owner}, this process runs as ${process.getuid?.()}; ` +
      `start as that user or as root, or ${USE_ANOTHER}`,
  );
}

async function existingElsewhere(
  dataDir: string,
  folder: string,
  report: (line: string) => void,
): Promise<PostgresHome> {
  const home = await ifThere(stat(folder));
  if (home === null) {
    throw new EmbeddedPostgresError(
      `the database of ${dataDir} was in ${folder}, which is gone; put it back, ` +
        `or remove ${placesOf(dataDir).pointer} to start with an empty one, or ${USE_ANOTHER}`,
    );
  }
  const owner = await ifThere(stat(join(folder, 'cluster')));
  const account = owner === null ? await accountFor(dataDir) : { uid: owner.uid, gid: owner.gid };
  report(`the database of ${dataDir} is stored in ${folder}`);
  return { folder, account };
}

async function newElsewhere(
  dataDir: string,
  account: Account,
  report: (line: string) => void,
): Promise<PostgresHome> {
  const folder = join(SYSTEM_FOLDER, createHash('sha256').update(dataDir).digest('hex').slice(0, 16));
  await mkdir(SYSTEM_FOLDER, { recursive: true, mode: 0o755 });
  if ((await ifThere(stat(folder))) !== null) {
    // The DATA_DIR was removed and created again: its old database is encrypted with a master key that is gone.
    const aside = `${folder}.${new Date().toISOString().replace(/[^0-9]/g, '')}`;
    const running = await readPidFile(join(folder, 'cluster'));
    if (running !== null) await stopServer(join(folder, 'cluster'), running.pid);
    await rename(folder, aside);
    report(
      `${dataDir} is new; the database that an earlier folder of this name had is set aside in ${aside}`,
    );
  }
  report(
    `user ${account.uid}, whom the server runs as, cannot enter ${dataDir}: the database is stored in ${folder}`,
  );
  await makeHome(folder, account);
  if (!(await canEnter(folder, account))) {
    throw new EmbeddedPostgresError(
      `the server runs as user ${account.uid}, who can enter neither ${dataDir} nor ${folder}; ` +
        `make ${SYSTEM_FOLDER} searchable (chmod o+x), or ${USE_ANOTHER}`,
    );
  }
  await createOnce(placesOf(dataDir).pointer, `${folder}\n`);
  return { folder, account };
}

/** Makes the folder; what root keeps in it (password, log) stays root's, or its owner's when that is the account. */
async function makeHome(folder: string, account: Account): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const parent = await stat(dirname(folder));
  if (parent.uid === account.uid) await chown(folder, account.uid, account.gid);
  else await letIn(folder, account);
}

/** A file made by root in a user's home goes to the user, who must be able to start without root next time. */
export async function giveToOwner(home: PostgresHome, file: string): Promise<void> {
  if (home.account === null) return;
  const { uid, gid } = await stat(home.folder);
  await chown(file, uid, gid);
}

/**
 * Lets the account pass through a folder of root's, and nothing more: not list it, not write to it. False when
 * that would take something from the folder's present group.
 */
async function letIn(folder: string, account: Account): Promise<boolean> {
  const stats = await stat(folder);
  if (mayEnter(stats, account)) return true;
  if (stats.uid !== 0 || (stats.gid !== 0 && (stats.mode & 0o070) !== 0)) return false;
  await chown(folder, stats.uid, account.gid);
  await chmod(folder, (stats.mode & 0o700) | 0o010);
  return true;
}

/** By the permission bits of the folder and of every folder above it. */
export async function canEnter(folder: string, account: Account): Promise<boolean> {
  for (let at = await realpath(folder); ; at = dirname(at)) {
    if (!mayEnter(await stat(at), account)) return false;
    if (at === dirname(at)) return true;
  }
}

function mayEnter(stats: Stats, account: Account): boolean {
  return may(stats, account, 0o1);
}

/** @param bits 4 read, 2 write, 1 execute or search */
export function may(stats: Stats, account: Account, bits: number): boolean {
  const shift = stats.uid === account.uid ? 6 : stats.gid === account.gid ? 3 : 0;
  return ((stats.mode >> shift) & bits) === bits;
}

/** The owner of the folder, or `nobody`. Only a user that is listed will do: initdb looks its own name up. */
async function accountFor(folder: string): Promise<Account> {
  const { uid } = await stat(folder);
  const users = ((await ifThere(readFile('/etc/passwd', 'utf8'))) ?? '')
    .split('\n')
    .map((line) => line.split(':'));
  const user =
    users.find((fields) => uid !== 0 && fields[2] === String(uid)) ??
    users.find(([name]) => name === 'nobody');
  if (user === undefined) {
    throw new EmbeddedPostgresError(
      `Postgres does not run as root, and this machine has no user "nobody" for it; start as an ordinary user or ${USE_ANOTHER}`,
    );
  }
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

import { constants } from 'node:fs';
import { access, mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createOnce, TEMPORARY_NAME } from './create-once.js';
import { FolderLock, type LockHolder } from './folder-lock.js';

/** The folder cannot be used; the message is one line and names the remedy. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

export interface Secret {
  value: string;
  /** True when this call generated it. */
  created: boolean;
  file: string;
}

const MARKER = 'postern-data';
const VERSION = 1;
/** The root of a mounted volume is not empty. */
const NOT_FOREIGN = new Set(['lost+found', '.DS_Store']);

/** Makes the folder when absent (0700); throws DataDirError when it cannot serve, and changes nothing then. */
export async function openDataDir(path: string): Promise<DataDir> {
  const wanted = resolve(path);
  try {
    // Only the folder itself is private: its parents belong to whoever laid them out.
    await mkdir(dirname(wanted), { recursive: true });
    await mkdir(wanted, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    if (!(await stat(wanted)).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    const folder = await realpath(wanted);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    await checkMarker(folder);
    return new DataDir(folder);
  } catch (error) {
    throw explained(wanted, error);
  }
}

async function checkMarker(folder: string): Promise<void> {
  const file = join(folder, MARKER);
  // List first, then read: whatever another starter has put here, it put the marker here before.
  const names = (await readdir(folder)).filter(
    (name) => !NOT_FOREIGN.has(name) && !TEMPORARY_NAME.test(name),
  );
  const marker = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return null;
  });
  if (marker === null && names.length > 0) {
    throw new DataDirError(
      `${folder} holds files that are not Postern's; set DATA_DIR to an empty or new folder`,
    );
  }
  await checkWriters(folder);
  if (marker === null) {
    await createOnce(file, `postern-data ${VERSION}\n`);
    return;
  }
  const version = Number(/^postern-data (\d+)\n?$/.exec(marker)?.[1]);
  if (Number.isNaN(version)) {
    throw new DataDirError(
      `${file} is not a Postern marker; set DATA_DIR to another folder, or, if this data is Postern's, ` +
        `let that file hold the line "postern-data ${VERSION}"`,
    );
  }
  if (version > VERSION) {
    throw new DataDirError(
      `${folder} was written by a newer Postern (layout ${version}, this one knows ${VERSION}); ` +
        'start the newer version or set DATA_DIR to another folder',
    );
  }
}

/** Whoever may write to the folder may put a master key or an admin token of their own in the place of ours. */
async function checkWriters(folder: string): Promise<void> {
  const self = process.getuid?.();
  // Windows has no such modes.
  if (self === undefined) return;
  const { mode, uid } = await stat(folder);
  // A volume that is ours by its group alone (fsGroup in Kubernetes) we could neither change nor use otherwise.
  const byGroup = self !== 0 && self !== uid;
  if ((mode & (byGroup ? 0o002 : 0o022)) === 0) return;
  throw new DataDirError(
    `${folder} may be written to by other users, who could replace its secrets; ` +
      `run chmod ${byGroup ? 'o' : 'go'}-w on it, or set DATA_DIR to another folder`,
  );
}

/** A folder that is ours. One running instance at a time may write to it: hold() first. */
export class DataDir {
  private readonly lock: FolderLock;

  /** @param path absolute, without symbolic links */
  constructor(readonly path: string) {
    this.lock = new FolderLock(join(path, 'lock'));
  }

  /** Takes the instance lock until release() or the end of the process. */
  async hold(): Promise<void> {
    const holder = await this.lock.take().catch((error: unknown) => {
      throw explained(this.path, error);
    });
    if (holder === null) return;
    throw new DataDirError(
      `another Postern (pid ${holder.pid}) is using ${this.path}; stop it or set DATA_DIR to another folder`,
    );
  }

  /** Who holds the lock, without taking it; null when nobody does. */
  async holder(): Promise<Pick<LockHolder, 'pid' | 'published'> | null> {
    const holder = await this.lock.holder();
    return holder && { pid: holder.pid, published: holder.published };
  }

  /** Sets what holder() reports of this process while it holds the lock. */
  publish(value: unknown): void {
    this.lock.publish(value);
  }

  release(): void {
    this.lock.release();
  }

  /** Reads `secrets/<name>`; null when there is none. */
  async keptSecret(name: string): Promise<string | null> {
    const file = join(this.path, 'secrets', name);
    return readSecret(file).catch((error: unknown) => {
      throw explained(file, error);
    });
  }

  /** Reads `secrets/<name>`, made with `generate` when absent. Two processes that race get the same value. */
  async secret(name: string, generate: () => string): Promise<Secret> {
    if (!/^[a-z0-9][a-z0-9._-]*$/.test(name))
      throw new TypeError(`not a name for a secret: ${JSON.stringify(name)}`);
    const folder = join(this.path, 'secrets');
    const file = join(folder, name);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const known = await readSecret(file);
      if (known !== null) return { value: known, created: false, file };
      const created = await createOnce(file, `${generate()}\n`);
      const value = await readSecret(file);
      if (value === null) throw new DataDirError(`${file} vanished while it was read; start again`);
      return { value, created, file };
    } catch (error) {
      throw explained(file, error);
    }
  }
}

async function readSecret(file: string): Promise<string | null> {
  try {
    const value = (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
    if (value !== '') return value;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  throw new DataDirError(`${file} is empty; put the secret back, or remove the file to have a new one made`);
}

const REMEDIES: Record<string, string> = {
  EACCES: 'is not writable for this user; change its owner or set DATA_DIR to another folder',
  EPERM: 'is not writable for this user; change its owner or set DATA_DIR to another folder',
  EROFS: 'is on a read-only file system; set DATA_DIR to a writable folder',
  ENOTDIR: 'is not a folder; set DATA_DIR to a folder',
  EEXIST: 'is not a folder; set DATA_DIR to a folder',
  EISDIR: 'is a folder, but a file is expected; rename or remove it',
  ENOSPC: 'is on a full disk; free some space',
  EDQUOT: 'is over its disk quota; free some space',
};

function explained(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const remedy =
    REMEDIES[code] ?? (code === '' ? undefined : `cannot be used (${code}); set DATA_DIR to another folder`);
  if (error instanceof DataDirError || remedy === undefined) return error;
  return new DataDirError(`${path} ${remedy}`, { cause: error });
}

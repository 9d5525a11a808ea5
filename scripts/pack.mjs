// The package that applications install: what runs and its declarations, without the tools that build a clone.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { read, root } from './files.mjs';

/** What the package is made of; `files` in package.json says what of it. */
const SOURCES = [
  'README.md',
  'CHANGELOG.md',
  'bin',
  'templates',
  'dist/src',
  'dist/migrations',
  'console/dist',
];
/** Optional dependencies that are for a clone alone. */
export const BUILD_TOOLS = ['@swc/core', 'rolldown'];

/** In declarations: imports, types named with import(), and modules that are added to. */
const IMPORTED = /(?:\bfrom |\bimport |\bimport\(|\bmodule )['"](\.[^'"]+)\.js['"]/g;

/**
 * Packs what is built, with declarations made now.
 *
 * @param npm npm's script
 * @param folder where the file is written
 * @returns its path, its size in bytes, and the paths in it
 */
export function pack(npm, folder) {
  const stage = mkdtempSync(join(tmpdir(), 'postern-pack-'));
  try {
    for (const path of SOURCES)
      if (existsSync(join(root, path))) cpSync(join(root, path), join(stage, path), { recursive: true });
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
    const tsc = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
    node(root, tsc, '--project', join(root, 'tsconfig.types.json'), '--outDir', join(stage, 'dist'));
    keepReachable(stage);
    const args = ['--ignore-scripts', '--json', '--loglevel=error', '--pack-destination', folder];
    const [{ filename, size, files }] = JSON.parse(node(stage, npm, 'pack', ...args));
    return { file: join(folder, basename(filename)), size, paths: files.map(({ path }) => path) };
  } finally {
    rmSync(stage, { recursive: true });
  }
}

/** tsc writes declarations of all sources. What no entry refers to is internal. */
function keepReachable(stage) {
  const { exports } = JSON.parse(readFileSync(join(stage, 'package.json'), 'utf8'));
  const kept = new Set(
    Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [join(stage, types)])),
  );
  for (const file of kept)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(IMPORTED))
      kept.add(join(dirname(file), `${path}.d.ts`));
  const dist = join(stage, 'dist');
  for (const path of readdirSync(dist, { recursive: true }))
    if (path.endsWith('.d.ts') && !kept.has(join(dist, path))) rmSync(join(dist, path));
}

function manifest() {
  // Scripts and overrides are for a clone too, and so is what keeps a clone from being published.
  const { private: _, scripts, devDependencies, overrides, ...kept } = JSON.parse(read('package.json'));
  for (const name of BUILD_TOOLS) delete kept.optionalDependencies[name];
  return kept;
}

function node(cwd, ...args) {
  return execFileSync(process.execPath, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

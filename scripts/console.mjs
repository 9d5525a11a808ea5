// Installs and builds the console, a package of its own in console/: for `npm run build`, and in the background of
// `npm start`. Does nothing if what was built is up to date. Plain Node, like every script of a start.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { withLock } from './lock.mjs';
import { install, isInstalled, main, npmScript, root, step } from './prepare.mjs';

const folder = join(root, 'console');
const at = (...parts) => join(folder, ...parts);
/** The page under /console shows it. */
const STATUS = at('.build-status');
const STAMP = '.postern-build';
/** Written by the build itself. */
const NOT_SOURCES = ['node_modules', 'dist', 'query-values.ts'];

await main(async () => {
  if (!existsSync(at('package.json'))) {
    console.log('There is no folder console/, so no console is built.');
    return 0;
  }
  if (isFresh()) return 0;
  await withLock(
    at('.build-lock'),
    async () => {
      if (!isFresh()) await build();
    },
    (pid) => console.log(`Waiting for another build of the console (process ${pid}) ...`),
  );
  return 0;
});

async function build() {
  try {
    if (!isInstalled({ folder, all: true })) {
      tell('installing');
      await install(process.stdout, { folder, all: true });
    }
    tell('building');
    const digest = sources();
    await step(process.stdout, 'Building the console', {
      remedy: 'The message of the build is above.',
      work: () =>
        runNode([npmScript(), 'run', 'build', '--silent', '--', '--outDir', '.dist-new', '--emptyOutDir'], {
          cwd: folder,
          stdio: ['ignore', 'ignore', 'inherit'],
        }),
    });
    writeFileSync(at('.dist-new', STAMP), digest);
    // A gateway that serves the previous build never sees half of the new one.
    rmSync(at('.dist-old'), { recursive: true, force: true });
    if (existsSync(at('dist'))) renameSync(at('dist'), at('.dist-old'));
    renameSync(at('.dist-new'), at('dist'));
    rmSync(at('.dist-old'), { recursive: true, force: true });
    rmSync(STATUS, { force: true });
  } catch (error) {
    tell('failed');
    throw error;
  }
}

function tell(state) {
  writeFileSync(`${STATUS}-new`, JSON.stringify({ state, pid: process.pid }));
  renameSync(`${STATUS}-new`, STATUS);
}

function isFresh() {
  try {
    return readFileSync(at('dist', STAMP), 'utf8') === sources();
  } catch {
    return false;
  }
}

/** A digest of what the build reads. */
function sources() {
  const hash = createHash('sha256');
  const add = (path) => hash.update(`${path}\0`).update(readFileSync(path)).update('\0');
  const walk = (parent) => {
    const entries = readdirSync(parent, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (NOT_SOURCES.includes(entry.name) || entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) walk(join(parent, entry.name));
      else add(join(parent, entry.name));
    }
  };
  walk(folder);
  // The values of query parameters are made from it.
  add(join(root, 'openapi.json'));
  // The form for a new provider has them.
  add(join(root, 'src', 'providers', 'presets.ts'));
  // The page Errors shows it.
  add(join(root, 'docs', 'reference', 'errors.md'));
  // The client of the admin API, and the package of the root that it needs, which is pinned.
  walk(join(root, 'src', 'client'));
  const { dependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  hash.update(String(dependencies['openapi-fetch']));
  return hash.digest('hex');
}

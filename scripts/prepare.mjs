// What has to be true before anything of Postern runs from a checkout: a fit Node, dependencies as locked, a fresh
// build. Each step does nothing when its result is there. Plain Node: this runs before node_modules exists.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runNode } from './child.mjs';
import { withLock } from './lock.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => join(root, ...parts);
const INSTALL_STAMP = at('node_modules', '.postern-install');
const BUILD_STAMP = at('dist', '.postern-build');
const TICK_MS = 10_000;

/** A step that failed after its tool has already said why. */
export class StepError extends Error {
  constructor(message, exitCode) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    const remedy = 'Install Node.js 24 LTS (at least 20.19) and try again.';
    throw new StepError(`Postern needs Node.js >= 20.19, this is ${process.versions.node}. ${remedy}`, 1);
  }
}

/** `quiet`: standard output belongs to somebody else (a CLI's JSON), so everything is said on standard error. */
export async function prepare({ quiet = false, build = true } = {}) {
  checkNode();
  const isReady = () => isInstalled() && (!build || isBuilt());
  if (isReady()) return;
  const say = quiet ? console.error : console.log;
  await withLock(
    at('.prepare.lock'),
    async () => {
      if (!isInstalled()) await install(say, quiet);
      if (build && !isBuilt()) await compile(say, quiet);
    },
    (pid) => say(`Waiting for another start (process ${pid}) to finish installing or building ...`),
  );
}

/** Runs a script's main function: failures are one clear line and an exit code, never a stack. */
export async function main(run) {
  try {
    process.exitCode = await run();
  } catch (error) {
    console.error(error instanceof StepError ? error.message : `Cannot go on: ${error.message}`);
    process.exitCode = error.exitCode ?? 1;
  }
}

function isInstalled() {
  const wanted = hash([at('package-lock.json')]);
  if (read(INSTALL_STAMP) === wanted) return true;
  // Installed by hand (npm ci, npm install): npm's own record of the tree decides, and the stamp is caught up.
  if (!matchesLock()) return false;
  try {
    writeFileSync(INSTALL_STAMP, wanted);
  } catch {
    // Somebody else's folder: the comparison above is simply made again next time.
  }
  return true;
}

/** Does npm's hidden lock file, written at the end of every complete install, hold what package-lock.json asks for? */
function matchesLock() {
  const installed = packagesOf(at('node_modules', '.package-lock.json'));
  const locked = packagesOf(at('package-lock.json'));
  if (installed === undefined || locked === undefined) return false;
  return Object.entries(locked).every(([path, { version, integrity, optional }]) => {
    const found = installed[path];
    if (path === '' || (found === undefined && optional)) return true;
    return found?.version === version && found?.integrity === integrity;
  });
}

function packagesOf(path) {
  const text = read(path);
  return text === undefined ? undefined : JSON.parse(text).packages;
}

async function install(say, quiet) {
  // The npm that runs this script, where there is one; else the one that came with this Node.
  const running = process.env.npm_execpath ?? '';
  const bundled = join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
  const windows = join(dirname(process.execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js');
  const npm = [basename(running) === 'npm-cli.js' ? running : '', bundled, windows].find(existsSync);
  if (npm === undefined)
    throw new StepError('Dependencies are missing and npm was not found: run `npm ci`.', 1);
  // Errors only: engine warnings about build tools help nobody here. Development dependencies hold the compiler.
  const args = [
    npm,
    'ci',
    '--include=dev',
    '--no-audit',
    '--no-fund',
    '--no-update-notifier',
    '--loglevel=error',
  ];
  await step(say, quiet, 'Installing dependencies as locked (npm ci)', args, {
    remedy:
      "npm's message is above. Check the network, npm's cache folder and who owns node_modules; then try again.",
  });
  writeFileSync(INSTALL_STAMP, hash([at('package-lock.json')]));
}

function isBuilt() {
  return existsSync(at('dist', 'src', 'main.js')) && read(BUILD_STAMP) === buildInputs();
}

async function compile(say, quiet) {
  // Hashed before the build: a file saved meanwhile makes the next start build again. No stamp survives a failure.
  const inputs = buildInputs();
  forgetBuild();
  await step(
    say,
    quiet,
    'Building (nest build)',
    [at('node_modules', '@nestjs', 'cli', 'bin', 'nest.js'), 'build'],
    {
      remedy: "The compiler's message is above.",
    },
  );
  mkdirSync(at('dist'), { recursive: true });
  writeFileSync(BUILD_STAMP, inputs);
}

export function forgetBuild() {
  rmSync(BUILD_STAMP, { force: true });
}

/** Content, not times: a checkout or a copied folder changes times, and `git stash` brings old ones back. */
function buildInputs() {
  const configs = readdirSync(root).filter((name) => /^tsconfig.*\.json$/.test(name));
  const files = [...configs, 'nest-cli.json', 'package-lock.json'].sort().map((name) => at(name));
  return hash([...files, ...walk(at('src')), ...walk(at('migrations'))]);
}

function walk(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? walk(path) : [path];
    });
}

function hash(paths) {
  const sum = createHash('sha256');
  for (const path of paths) {
    const content = read(path) ?? '';
    sum.update(`${path.slice(root.length)}\0${content.length}\0${content}`);
  }
  return sum.digest('hex');
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

async function step(say, quiet, label, args, { remedy }) {
  const started = performance.now();
  const seconds = () => Math.round((performance.now() - started) / 1000);
  say(`${label} ...`);
  const ticks = setInterval(() => say(`  still at it, ${seconds()} s`), TICK_MS);
  try {
    const code = await runNode(args, { cwd: root, stdio: ['ignore', quiet ? 2 : 'inherit', 'inherit'] });
    if (code > 128) throw new StepError(`${label}: stopped.`, code);
    if (code !== 0) throw new StepError(`${label}: failed. ${remedy}`, 1);
    say(`  done in ${seconds()} s`);
  } finally {
    clearInterval(ticks);
  }
}

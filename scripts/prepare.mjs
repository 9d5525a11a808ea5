// What has to be true before anything of Postern runs from a checkout: a fit Node, dependencies as locked, a fresh
// build. Each step does nothing when its result is there. Plain Node: this runs before node_modules exists.
import './check-node.mjs';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isToldToStop, runNode, stoppedCode } from './child.mjs';
import { isProductFresh, WITHOUT_BUNDLE } from './compile.mjs';
import { withLock } from './lock.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => join(root, ...parts);
/** Not a terminal: a log, which wants few lines. */
const LOG_TICK_MS = 30_000;
const BENCH = at('bench');

/** A step that failed after its tool has already said why. */
export class StepError extends Error {
  constructor(message, exitCode) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * `quiet`: standard output belongs to somebody else (a CLI's JSON), so everything is printed on standard error.
 * `all`: also what only tests, lint and tools need; a start does without.
 * `bundled`: the build with its bundle.
 */
export async function prepare({ quiet = false, build = true, all = false, bundled = true } = {}) {
  const isBuilt = () => !build || isProductFresh({ bundled });
  const isReady = () => isInstalled({ all }) && isBuilt();
  if (isReady()) return;
  const out = quiet ? process.stderr : process.stdout;
  await withLock(
    at('.prepare.lock'),
    async () => {
      if (!isInstalled({ all })) await install(out, { all });
      if (!isBuilt()) await compile(out, { bundled });
    },
    (pid) => out.write(`Waiting for another start (process ${pid}) to finish installing or building ...\n`),
  );
}

/** Installs what only the benchmark needs: other gateways to compare with. */
export async function prepareBench() {
  const isInstalledThere = () => isInstalled({ folder: BENCH });
  if (isInstalledThere()) return;
  await withLock(
    at('.prepare.lock'),
    () => isInstalledThere() || install(process.stdout, { folder: BENCH }),
    () => {},
  );
}

/** Runs a script's main function: failures are one clear line and an exit code, never a stack. */
export async function main(run) {
  try {
    process.exitCode = await run();
  } catch (error) {
    console.error(error instanceof StepError ? error.message : `Failed: ${error.message}`);
    process.exitCode = error.exitCode ?? 1;
  }
}

/** A stamp is `<lock file's hash> run`, or `all` with what is for development. */
const stampIn = (folder) => join(folder, 'node_modules', '.postern-install');
const lockIn = (folder) => join(folder, 'package-lock.json');

export function isInstalled({ folder = root, all = false } = {}) {
  const lock = hash(lockIn(folder));
  const stamp = read(stampIn(folder));
  if (stamp === `${lock} all` || (!all && stamp === `${lock} run`)) return true;
  // Installed by hand (npm ci, npm install): npm's own record of the tree decides, and the stamp is caught up.
  if (!matchesLock(folder, all)) return false;
  try {
    writeFileSync(stampIn(folder), `${lock} ${all ? 'all' : 'run'}`);
  } catch {
    // Somebody else's folder: the comparison above is simply made again next time.
  }
  return true;
}

/** Does npm's hidden lock file, written at the end of every complete install, hold what package-lock.json asks for? */
function matchesLock(folder, all) {
  const installed = packagesOf(join(folder, 'node_modules', '.package-lock.json'));
  const locked = packagesOf(lockIn(folder));
  if (installed === undefined || locked === undefined) return false;
  // What the build needs; other optional packages are for some platforms only.
  const tools = Object.keys(locked[''].optionalDependencies ?? {}).map((name) => `node_modules/${name}`);
  return Object.entries(locked).every(([path, { version, integrity, optional, dev, devOptional }]) => {
    const found = installed[path];
    const isOptional = (optional || devOptional) && !tools.includes(path);
    if (path === '' || (found === undefined && (isOptional || (dev && !all)))) return true;
    return found !== undefined && found.version === version && found.integrity === integrity;
  });
}

function packagesOf(path) {
  const text = read(path);
  return text === undefined ? undefined : JSON.parse(text).packages;
}

/** npm's script: of the npm that runs this one, where there is one; else of the one that came with this Node. */
export function npmScript() {
  const running = process.env.npm_execpath ?? '';
  const bundled = join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js');
  const windows = join(dirname(process.execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js');
  return [basename(running) === 'npm-cli.js' ? running : '', bundled, windows].find(existsSync);
}

export async function install(out, { folder = root, all = false } = {}) {
  const npm = npmScript();
  if (npm === undefined)
    throw new StepError('Dependencies are missing and npm was not found: run `npm ci`.', 1);
  // `npm ci` begins by removing what is there, which a gateway that runs from this folder would miss.
  const adds = matchesLock(folder, false);
  const args = [
    npm,
    ...(adds ? ['install', '--no-save'] : ['ci']),
    all ? '--include=dev' : '--omit=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--no-update-notifier',
    // Engine warnings about build tools help nobody here.
    '--loglevel=error',
  ];
  const what = adds ? 'what development needs (npm install)' : 'dependencies as locked (npm ci)';
  const remedy =
    "npm's message is above. Check the network, npm's cache folder and who owns node_modules; then try again.";
  const wanted = Object.entries(packagesOf(lockIn(folder)) ?? {})
    .filter(([path, { dev, optional }]) => path !== '' && !optional && (all || !dev))
    // npm makes the folders first.
    .map(([path]) => join(folder, path, 'package.json'));
  await step(out, `Installing ${what}`, {
    remedy,
    progress: () => `${wanted.filter(existsSync).length} of ${wanted.length} packages`,
    work: (tell) =>
      runNode(args, {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'pipe'],
        onSpawn: (child) => child.stderr.on('data', tell),
      }),
  });
  writeFileSync(stampIn(folder), `${hash(lockIn(folder))} ${all ? 'all' : 'run'}`);
}

/** In another process: the compilers' memory, some 600 MB after a whole build, would stay for as long as the gateway runs. */
function compile(out, { bundled }) {
  const args = [at('scripts', 'compile.mjs'), ...(bundled ? [] : [WITHOUT_BUNDLE])];
  return step(out, 'Building', {
    remedy: "The compiler's message is above.",
    work: (tell) =>
      runNode(args, {
        cwd: root,
        stdio: ['ignore', 'ignore', 'pipe'],
        onSpawn: (child) => child.stderr.on('data', tell),
      }),
  });
}

function hash(path) {
  return createHash('sha256')
    .update(read(path) ?? '')
    .digest('hex');
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Shows one step: on a terminal one line that is rewritten every second, elsewhere few lines.
 *
 * @param work gets what passes on its own messages; resolves to an exit code
 */
export async function step(out, label, { remedy, progress = () => '', work }) {
  const started = performance.now();
  const seconds = () => `${Math.round((performance.now() - started) / 1000)} s`;
  // npm first removes what it has installed.
  const soFar = () => [isToldToStop() ? 'stopping' : progress(), seconds()].filter(Boolean).join(', ');
  const line = out.isTTY
    ? (text, end = '') => out.write(`\r\x1b[K${label} ... ${text}${end}`)
    : (text) => out.write(`  ${text}\n`);
  out.write(out.isTTY ? `${label} ... ` : `${label} ...\n`);
  const ticks = setInterval(() => line(soFar()), out.isTTY ? 1_000 : LOG_TICK_MS);
  const tell = (message) => {
    if (out.isTTY) out.write('\r\x1b[K');
    process.stderr.write(message);
  };
  try {
    const code = await work(tell);
    if (code !== 0 && out.isTTY) out.write('\n');
    // npm ends with 1 on a signal too.
    if (code !== 0 && isToldToStop()) throw new StepError(`${label}: stopped.`, stoppedCode());
    if (code > 128) throw new StepError(`${label}: stopped.`, code);
    if (code !== 0) throw new StepError(`${label}: failed. ${remedy}`, 1);
    line(`done in ${seconds()}`, '\n');
  } finally {
    clearInterval(ticks);
  }
}

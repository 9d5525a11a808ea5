// A gateway as `npm start` runs it, in a temporary folder and with settings of the demo's own.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Starting takes a second or two; on a machine that cannot do it in this time something is wrong. */
const START_MS = 120_000;
/** The gateway's own bounds are shorter: no grace for calls, ten seconds for the last rows. */
const STOP_MS = 30_000;

/**
 * `args`: what Node is to run. `ready` gives what the gateway prints at its first start: `url`, `key` and `adminTokenFile`.
 * `stop` ends it and with it its embedded Postgres.
 */
export function startGateway(args, dataDir, settings) {
  const child = spawn(process.execPath, args, {
    // Not the checkout: its .env is not meant for the demo. Nor is this shell's DATABASE_URL.
    cwd: dataDir,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TMPDIR: process.env.TMPDIR,
      SystemRoot: process.env.SystemRoot,
      PORT: '0',
      DATA_DIR: join(dataDir, 'data'),
      SHUTDOWN_GRACE_MS: '0',
      LOG_LEVEL: 'warn',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => (printed += text));
  }
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(`exit code ${code ?? signal}`));
  });
  const ready = new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`the gateway did not start (${why}):\n${printed}`));
    const timer = setTimeout(() => fail(`not ready after ${START_MS / 1000} s`), START_MS);
    child.stdout.on('data', () => {
      const found = (pattern) => pattern.exec(printed)?.[1];
      const url = found(/ready on (\S+)\n/);
      const adminTokenFile = found(/the admin token is in (.+)\n/);
      const key = found(/shown only once: (\S+)\n/);
      if (url && key && adminTokenFile) resolve({ url, key, adminTokenFile });
    });
    void ended.then(fail);
    void Promise.allSettled([ended]).then(() => clearTimeout(timer));
  });
  ready.catch(() => {}); // reported by whoever waits for it
  return {
    ready,
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Also the database, where root had to keep it elsewhere (see `src/embedded-postgres/home.ts`). */
export async function removeDataDir(folder) {
  const elsewhere = readIfThere(join(folder, 'data', 'postgres', 'location'));
  for (const path of [elsewhere, folder]) if (path) await rm(path, { recursive: true, force: true });
}

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

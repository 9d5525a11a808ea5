import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createOnce, syncFolder } from '../platform/create-once.js';
import { codeOf, EmbeddedPostgresError, ifThere, USE_ANOTHER } from './embedded-postgres-error.js';
import { giveToOwner, type PostgresHome } from './home.js';

/** Role and database of the embedded server. */
export const NAME = 'postern';

/** What a child gets: nothing of our environment, which holds secrets, and no PG* that would steer it. */
const CHILD_ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/local/bin:/usr/bin:/bin' };

/** True: complete. False: absent. Throws when it is damaged or of another major version. */
export async function clusterExists(
  cluster: string,
  major: number,
  logTail: () => Promise<string>,
): Promise<boolean> {
  const names = await ifThere(readdir(cluster));
  if (names === null || names.length === 0) return false;
  const version = await ifThere(readFile(join(cluster, 'PG_VERSION'), 'utf8'));
  if (version !== null && Number(version) !== major) {
    throw new EmbeddedPostgresError(
      `the database in ${cluster} was made by Postgres ${version.trim()}, this is ${major}; ` +
        `dump it with its own version and load it into a new DATA_DIR, or ${USE_ANOTHER}`,
    );
  }
  for (const part of ['PG_VERSION', 'global/pg_control', 'base', 'pg_wal', 'postgresql.conf']) {
    if ((await ifThere(stat(join(cluster, part)))) === null)
      throw damaged(cluster, `${part} is missing`, await logTail());
  }
  return true;
}

export function damaged(cluster: string, what: string, logTail: string): EmbeddedPostgresError {
  const tail = logTail === '' ? '' : `\nThe end of the server's log:\n${logTail}`;
  return new EmbeddedPostgresError(
    `the database in ${cluster} cannot be used: ${what}; restore it from a backup, ` +
      `or rename the folder to start with an empty one, or ${USE_ANOTHER}. Nothing was changed.${tail}`,
  );
}

/** The password of the superuser, generated before the first cluster; never replaced while a cluster exists. */
export async function clusterPassword(home: PostgresHome, exists: boolean): Promise<string> {
  const file = join(home.folder, 'password');
  if (!exists && (await createOnce(file, `${randomBytes(24).toString('base64url')}\n`)))
    await giveToOwner(home, file);
  const password = (await ifThere(readFile(file, 'utf8')))?.trim() ?? '';
  if (password !== '') return password;
  throw new EmbeddedPostgresError(
    `${file} is missing or empty; put the database's password back, or ${USE_ANOTHER}`,
  );
}

/**
 * Runs initdb beside the final name and renames: a cluster is there completely or not at all, whenever we are
 * killed. The caller holds the home's lock, so that every `new-…` found is the rest of a dead attempt.
 */
export async function createCluster(
  home: PostgresHome,
  native: string,
  password: string,
  fsync: boolean,
): Promise<void> {
  for (const name of await readdir(home.folder)) {
    if (name.startsWith('new-')) await removeTree(join(home.folder, name));
  }
  const folder = join(home.folder, `new-${randomBytes(4).toString('hex')}`);
  await mkdir(folder, { mode: 0o700 });
  try {
    const passwordFile = join(folder, 'password');
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
    for (const path of [passwordFile, folder]) {
      if (home.account !== null) await chown(path, home.account.uid, home.account.gid);
    }
    await runInitdb(home, native, join(folder, 'cluster'), passwordFile, fsync);
    await rename(join(folder, 'cluster'), join(home.folder, 'cluster'));
    if (fsync) await syncFolder(home.folder);
  } finally {
    await removeTree(folder);
  }
}

async function runInitdb(
  home: PostgresHome,
  native: string,
  cluster: string,
  passwordFile: string,
  fsync: boolean,
): Promise<void> {
  const settings = {
    shared_buffers: '128MB',
    // Without fsync it is a server of tests, which many gateways share.
    max_connections: fsync ? '100' : '200',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // The log is one file, cut only when the server starts: nothing that recurs without a problem belongs in it.
    log_checkpoints: 'off',
    log_autovacuum_min_duration: '-1',
  };
  const args = ['-D', cluster, '-U', NAME, `--pwfile=${passwordFile}`, '-A', 'scram-sha-256', '-E', 'UTF8'];
  // The builtin provider does not change its sort order with the machine's C library or ICU.
  args.push('--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--no-instructions');
  for (const [name, value] of Object.entries(settings)) args.push('-c', `${name}=${value}`);
  if (!fsync) args.push('--no-sync');
  const { code, output } = await run(join(native, 'bin', 'initdb'), args, home);
  if (code === 0) return;
  if (/No space left on device|Disk quota exceeded/.test(output))
    throw new EmbeddedPostgresError(
      `the disk of ${home.folder} is full; free some space (a new database needs about 100 MB) or ${USE_ANOTHER}`,
    );
  const tail = output.trim().split('\n').slice(-12).join('\n');
  throw new EmbeddedPostgresError(
    `initdb failed in ${home.folder} (${code}); ${USE_ANOTHER}. Its last output:\n${tail}`,
  );
}

/**
 * Runs a program of the package as the server's account and waits for its end.
 *
 * @param log gets what it and its children write; without it that is the output
 */
export function run(
  program: string,
  args: string[],
  home: PostgresHome,
  environment: Record<string, string> = {},
  log?: number,
): Promise<{ code: string | number; output: string }> {
  return new Promise((resolve, reject) => {
    let output = '';
    const child = spawn(program, args, {
      cwd: '/',
      env: { ...CHILD_ENVIRONMENT, ...environment },
      stdio: ['ignore', log ?? 'pipe', log ?? 'pipe'],
      detached: true, // Ctrl-C must not leave half the processes of an initdb behind.
      ...home.account,
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    }
    child.on('error', (error) => reject(cannotRun(program, error)));
    child.on('close', (code, signal) => resolve({ code: code ?? signal ?? 'unknown', output }));
  });
}

/** spawn(2) itself failed. ENOENT for a file that exists: its loader is missing (a musl system such as Alpine). */
function cannotRun(program: string, error: unknown): EmbeddedPostgresError {
  const reasons: Record<string, string> = {
    ENOENT: 'needs glibc, which this system does not have',
    EACCES: 'may not be executed here (a file system mounted noexec?)',
    EPERM: 'may not be started as another user here; start as an ordinary user',
    EINVAL: 'may not be started as another user here; start as an ordinary user',
  };
  const code = codeOf(error) ?? String(error);
  return new EmbeddedPostgresError(
    `${program} ${reasons[code] ?? `cannot be started (${code})`}, or ${USE_ANOTHER}`,
    {
      cause: error,
    },
  );
}

/** An orphaned initdb may still be writing there. */
function removeTree(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

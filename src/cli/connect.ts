import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { loadRemoteEnv } from '../config/remote-env.js';
import type { Target } from './api.js';
import { CliError } from './cli-error.js';

/** The admin API in this process. Each command opens its own; a test lets many commands of one process use the same. */
export const local = {
  open: async (): Promise<Target> => (await import('./local-app.js')).openLocalApi(),
};

/**
 * Finds the admin API of a command: that of the gateway at the URL; without a URL that of the gateway which runs with the
 * settings of this command on this machine; else the same API in this process, on the database.
 *
 * @param given the value of `--url`
 */
export async function connect(given: string | undefined): Promise<Target> {
  return remoteTarget(given) ?? (await runningTarget()) ?? (await local.open());
}

/** As `connect()`, for what only a gateway that runs can say. @throws CliError if none runs with these settings */
export async function connectRunning(given: string | undefined): Promise<Target> {
  const target = remoteTarget(given) ?? (await runningTarget());
  if (target !== null) return target;
  throw new CliError('no gateway runs with these settings on this machine; start it, or name one with --url');
}

/** The gateway at the URL that was given, or null if none was. */
function remoteTarget(given: string | undefined): Target | null {
  const { url, adminToken } = loadRemoteEnv();
  const wanted = given ?? url;
  if (wanted === undefined) return null;
  const base = baseUrl(wanted, given === undefined ? 'POSTERN_URL' : '--url');
  if (adminToken === undefined) {
    throw new CliError(
      `${base} needs its admin token: set POSTERN_ADMIN_TOKEN, or POSTERN_ADMIN_TOKEN_FILE to the name of a file with it`,
    );
  }
  return { url: base, token: adminToken, close: () => Promise.resolve() };
}

/** @throws CliError for a command that needs the database or the folders of a gateway, if a URL is given */
export function mustBeLocal(given: string | undefined, needs: string): void {
  if (given === undefined && loadRemoteEnv().url === undefined) return;
  throw new CliError(
    `this command needs ${needs}, so it does not work over HTTP; run it where the gateway's settings are, without ` +
      (given === undefined ? 'POSTERN_URL' : '--url'),
  );
}

function baseUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new CliError(`${source} must be a URL such as https://gateway.example.com, without a password`);
  }
  const path = url.pathname.replace(/\/+$/, '').replace(/(\/admin)?\/v1$/, '');
  return url.origin + path;
}

async function runningTarget(): Promise<Target | null> {
  const { loadEnv } = await import('../config/env.js');
  const { DataDirError, openDataDir } = await import('../platform/data-dir.js');
  const { findRunningGateway } = await import('../config/running-gateway.js');
  const env = loadEnv();
  // openDataDir() would create the folder.
  if (!existsSync(join(env.dataDir, 'postern-data'))) return null;
  try {
    const found = await findRunningGateway(await openDataDir(env.dataDir), env);
    return found && { ...found, close: () => Promise.resolve() };
  } catch (error) {
    // A gateway that runs on this folder could use it. If this command needs the folder, it reports the error.
    if (error instanceof DataDirError) return null;
    throw error;
  }
}

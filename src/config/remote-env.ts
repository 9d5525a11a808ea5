import { resolve } from 'node:path';
import { EnvError } from './env-error.js';
import { gatherEnv, processEnv } from './env-source.js';

/** The settings with which the command line uses a gateway over HTTP. They are not settings of a gateway. */
export interface RemoteEnv {
  url: string | undefined;
  adminToken: string | undefined;
}

/**
 * Reads POSTERN_URL and POSTERN_ADMIN_TOKEN(_FILE) from the environment and `.env`. Loads no schema: these commands start
 * in a fraction of a second.
 *
 * @throws EnvError for a file that cannot be read
 */
export function loadRemoteEnv(): RemoteEnv {
  const errors: string[] = [];
  const variables = { names: ['POSTERN_URL', 'POSTERN_ADMIN_TOKEN'], secrets: ['POSTERN_ADMIN_TOKEN'] };
  const raw = gatherEnv(variables, processEnv(), resolve('.env'), errors);
  if (errors.length > 0) throw new EnvError(errors);
  return { url: raw.POSTERN_URL, adminToken: raw.POSTERN_ADMIN_TOKEN };
}

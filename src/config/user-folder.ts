import { homedir } from 'node:os';
import { join } from 'node:path';
import { processEnv } from './env-source.js';

/** Where the command line keeps what belongs to this user of the machine (XDG Base Directory Specification). */
export function userFolder(): string {
  const { XDG_CONFIG_HOME: config, APPDATA: appData } = processEnv();
  const base = config || (process.platform === 'win32' && appData) || join(homedir(), '.config');
  return join(base, 'postern');
}

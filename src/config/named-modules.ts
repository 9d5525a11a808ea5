import { resolve } from 'node:path';
import { EnvError } from './env-error.js';
import { gatherEnv, processEnv } from './env-source.js';

/** What the variable accepts, for its error. */
export const MODULE_NAMES_REMEDY =
  'must be names of packages, or of files such as ./modules/quotas.js, separated by commas';

const PACKAGE =
  /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*(?:\/(?!\.\.?(?:\/|$))[A-Za-z0-9._~-]+)*$/;
const FILE = /^\.(?:\/(?!\.\.?(?:\/|$))[^/\\]+)+$/;

/** The names in MODULES. Files are below the working directory. */
export function moduleNames(value: string): readonly string[] | undefined {
  const names = value.split(',').map((name) => name.trim());
  return names.every((name) => PACKAGE.test(name) || FILE.test(name)) ? names : undefined;
}

/**
 * MODULES alone: the modules that it names declare other settings. Loads no schema, because each command asks for it.
 *
 * @param source undefined: the environment of this process and `.env`
 * @throws EnvError
 */
export function namedModules(source?: NodeJS.ProcessEnv): readonly string[] {
  // What cannot be read is reported with all other settings.
  const file = source === undefined ? resolve('.env') : null;
  const { MODULES } = gatherEnv({ names: ['MODULES'], secrets: [] }, source ?? processEnv(), file, []);
  if (MODULES === undefined) return [];
  const names = moduleNames(MODULES);
  if (names === undefined) throw new EnvError([`MODULES: ${MODULE_NAMES_REMEDY}`]);
  return names;
}

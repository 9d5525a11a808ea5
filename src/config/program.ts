import { existsSync } from 'node:fs';
import module from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gatherEnv, processEnv } from './env-source.js';
import { packageRoot } from '../platform/package-root.js';

/** What loads code of others first, or names files that the compiler made: hooks, debuggers, profiles. */
const WANTS_FILES =
  /(?:^|\s)(?:-r|--(?:import|require|(?:experimental-)?loader|enable-source-maps|inspect(?:-brk|-wait)?|cpu-prof))(?=[\s=]|$)/;

/** For Node 22.8 and later. */
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => unknown };

/**
 * Runs a program of the package: as `scripts/bundle.mjs` bundled it, or its compiled files with node_modules. Code of others
 * never meets the bundle: it would load a second Nest, TypeORM or zod from node_modules, and patches of pg or express would
 * change packages that nobody uses.
 *
 * @param name of the bundled file
 * @param file the compiled one, below `dist/src`
 */
export async function runProgram(name: string, file: string): Promise<void> {
  const dist = join(packageRoot(), 'dist');
  const bundled = join(dist, 'bundled', `${name}.js`);
  const path = !isCodeOfOthersWanted() && existsSync(bundled) ? bundled : join(dist, 'src', file);
  enableCompileCache?.(join(dist, '.compile-cache'));
  await import(pathToFileURL(path).href);
}

function isCodeOfOthersWanted(): boolean {
  const env = processEnv();
  const flags = [...process.execArgv, env.NODE_OPTIONS ?? ''].join(' ').replaceAll('_', '-');
  if (WANTS_FILES.test(flags)) return true;
  // What cannot be read is reported with all other settings.
  const { MODULES } = gatherEnv({ names: ['MODULES'], secrets: [] }, env, resolve('.env'), []);
  return MODULES !== undefined;
}

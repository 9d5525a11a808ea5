import { POSTERN_OPTIONS } from '../config/config.module.js';
import { type Env, loadEnv, type PosternOptions } from '../config/env.js';
import { checkedFeatures, DeclaredFeature } from '../config/features.js';
import { misspeltSettings } from '../config/misspelt-settings.js';
import { DeclaredSettings } from '../config/module-settings.js';
import { type ImportedModule, modulesBelow, valuesOf } from './module-tree.js';

/**
 * Reads the environment, with what the modules below the root declare and the application gives.
 *
 * @param source undefined: the environment of this process and `.env`
 * @throws EnvError; Error if the module does not import PosternModule
 */
export async function readEnv(
  root: ImportedModule,
  options: PosternOptions,
  source?: NodeJS.ProcessEnv,
): Promise<Env> {
  const modules = await modulesBelow(root);
  const given = valuesOf(modules, POSTERN_OPTIONS) as PosternOptions[];
  if (given.length !== 1)
    throw new Error(
      given.length === 0
        ? 'the root module does not import the gateway: add PosternModule.forRoot() to its imports'
        : 'PosternModule.forRoot() is called more than once; import it in the root module only',
    );
  checkedFeatures(valuesOf(modules, DeclaredFeature));
  const declared = valuesOf(modules, DeclaredSettings) as DeclaredSettings[];
  // An option that is undefined is not given: it hides no other one.
  const own = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return loadEnv(source, undefined, { declared, options: { ...given[0], ...own } });
}

/** Names that are almost settings, or in `.env` and none, for people. @returns one line for each */
export async function misspeltBelow(root: ImportedModule): Promise<string[]> {
  return misspeltSettings(valuesOf(await modulesBelow(root), DeclaredSettings) as DeclaredSettings[]);
}

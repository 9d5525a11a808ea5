import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Type } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';

/**
 * The root module of the project in a folder: the class that the file named in its package.json exports, `"postern": {
 * "app": "./dist/app.module.js" }`.
 *
 * @returns null if no package.json in the folder names one
 * @throws Error whose message names the remedy if the file cannot be loaded, or exports no module or several
 */
export async function projectApp(folder = process.cwd()): Promise<Type | null> {
  const app = appOf(resolve(folder, 'package.json'));
  if (app === null) return null;
  const path = resolve(folder, app);
  const exported = await load(app, path);
  const classes = [...new Set(Object.values(exported))].filter(isModule);
  if (classes.length === 1) return classes[0]!;
  const found = classes.length === 0 ? 'no Nest module' : classes.map(({ name }) => name).join(', ');
  throw new Error(`${app}, which package.json names as the app, must export one module; it exports ${found}`);
}

function appOf(manifest: string): string | null {
  let text: string;
  try {
    text = readFileSync(manifest, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${manifest} cannot be read: ${describeError(error)}`, { cause: error });
  }
  let app: unknown;
  try {
    app = (JSON.parse(text) as { postern?: { app?: unknown } } | null)?.postern?.app;
  } catch (error) {
    throw new Error(`${manifest} is not JSON: ${describeError(error)}`, { cause: error });
  }
  if (app === undefined) return null;
  if (typeof app === 'string' && app !== '') return app;
  throw new Error(`${manifest}: postern.app must be a path, such as "./dist/app.module.js"`);
}

async function load(app: string, path: string): Promise<Record<string, unknown>> {
  // Also for a file that does not load Nest.
  await import('reflect-metadata');
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    const { code, url } = error as { code?: string; url?: string };
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' && url === pathToFileURL(path).href;
    const why = isMissing ? 'it is not there; build the project first (npm run build)' : describeError(error);
    throw new Error(`${app}, which package.json names as the app, cannot be loaded: ${why}`, {
      cause: error,
    });
  }
}

/** What `@Module()` has marked. */
function isModule(value: unknown): value is Type {
  return (
    typeof value === 'function' &&
    ['imports', 'providers', 'controllers', 'exports'].some((key) => Reflect.hasOwnMetadata(key, value))
  );
}

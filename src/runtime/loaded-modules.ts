import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compileFunction, constants } from 'node:vm';
import type { DynamicModule, Type } from '@nestjs/common';
import { DeclaredFeature, type LoadedModule, LoadedModules } from '../config/features.js';
import { packageRoot } from '../platform/package-root.js';
import { type ImportedModule, modulesBelow, valuesOf } from './module-tree.js';

/** A module that MODULES names cannot be used. The message is for operators. */
export class LoadError extends Error {
  constructor(name: string, reason: string, cause?: unknown) {
    super(`MODULES: ${name} ${reason}`, { cause });
    this.name = 'LoadError';
  }
}

/** After which a person is told what the start waits for. */
const SLOW_MS = 10_000;

type Export = Type | DynamicModule;

/**
 * The root of the application with the modules that MODULES names, after those of the root itself.
 *
 * @param names packages, or files that begin with `./`, below the working directory
 * @throws LoadError
 */
export async function withLoadedModules(
  root: ImportedModule,
  names: readonly string[],
): Promise<ImportedModule> {
  if (names.length === 0) return root;
  const base = process.cwd();
  const known = new Map((await modulesBelow(root)).map((module) => [classOf(module), 'the application']));
  const loaded: Export[] = [];
  const listed: LoadedModule[] = [];
  for (const name of names) {
    const folder = folderOf(name, base);
    rejectCopies(name, folder);
    const module = moduleOf(name, await load(name, base));
    const by = known.get(classOf(module));
    if (by !== undefined) throw new LoadError(name, `is already loaded, by ${by}; name it once`);
    known.set(classOf(module), `the name ${name}`);
    loaded.push(module);
    listed.push({ name, version: versionAbove(folder) });
  }
  const below = (await Promise.all(loaded.map(modulesBelow))).flat();
  const features = valuesOf(below, DeclaredFeature) as DeclaredFeature[];
  const all: DynamicModule = {
    module: class ApplicationWithModules {},
    imports: [root, ...loaded],
    providers: [{ provide: LoadedModules, useValue: new LoadedModules(listed, new Set(features)) }],
  };
  return all;
}

const classOf = (module: Export): Type => (typeof module === 'function' ? module : module.module);

/** The real folder of a package or of a file. @throws LoadError if there is none */
function folderOf(name: string, base: string): string {
  if (!name.startsWith('./')) return packageFolder(name, join(base, 'package.json')) ?? notFound(name, base);
  const file = resolve(base, name);
  return existsSync(file) ? dirname(realpathSync(file)) : notFound(name, base);
}

function notFound(name: string, base: string): never {
  throw new LoadError(
    name,
    `was not found below ${base}; ${name.startsWith('./') ? 'check its path' : 'install it there'}`,
  );
}

/** The real folder of a package, where Node finds it from this file. */
function packageFolder(name: string, file: string): string | null {
  const [, packageName] = /^((?:@[^/]+\/)?[^/]+)/.exec(name)!;
  const folders = createRequire(file).resolve.paths(packageName!) ?? [];
  const found = folders
    .map((folder) => join(folder, packageName!))
    .find((folder) => existsSync(join(folder, 'package.json')));
  return found === undefined ? null : realpathSync(found);
}

/** @throws LoadError if the module would use another Nest than the gateway does, or another Postern */
function rejectCopies(name: string, folder: string): void {
  const from = join(folder, 'package.json');
  const nest = packageFolder('@nestjs/core', from);
  const own = packageFolder('@nestjs/core', join(packageRoot(), 'package.json'));
  if (nest === null)
    throw new LoadError(
      name,
      `does not find @nestjs/core from ${folder}; put it below the gateway, whose Nest it must use (${own})`,
    );
  if (nest !== own)
    throw new LoadError(
      name,
      `would use another Nest, ${nest}, than the gateway's, ${own}; make @nestjs/core a peer dependency of it`,
    );
  const postern = packageFolder('postern', from);
  if (postern !== null && postern !== realpathSync(packageRoot()))
    throw new LoadError(
      name,
      `would use another Postern, ${postern}, than the one that runs, ${packageRoot()}; make postern a peer dependency of it`,
    );
}

/** As a file of the working directory would import it. */
async function load(name: string, base: string): Promise<object> {
  const say = (what: string) => process.stderr.write(`postern: MODULES: ${name} ${what}\n`);
  const slow = setTimeout(() => say('is still being loaded'), SLOW_MS);
  // It calls process.exit(), or waits for what never comes while nothing else keeps the process.
  const onExit = () => {
    say('ended the process while it was loaded');
    process.exitCode = 1;
  };
  process.once('exit', onExit);
  try {
    return await importFrom(name, join(base, 'modules.js'));
  } catch (error) {
    const { stack, message } = error instanceof Error ? error : new Error(String(error));
    throw new LoadError(name, `cannot be loaded: ${stack ?? message}`, error);
  } finally {
    clearTimeout(slow);
    process.off('exit', onExit);
  }
}

async function importFrom(name: string, from: string): Promise<object> {
  let file: string;
  try {
    file = createRequire(from).resolve(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    // Its exports are for import only. Node warns that this is experimental, so it is not for all.
    const imported = compileFunction('return import(name)', ['name'], {
      filename: from,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    }) as (name: string) => Promise<object>;
    return imported(name);
  }
  return (await import(pathToFileURL(file).href)) as object;
}

/** The default export if it is a module, else the only export that is one. @throws LoadError */
function moduleOf(name: string, exported: { default?: unknown }): Export {
  if (isModule(exported.default)) return exported.default;
  // What CommonJS exports is the default export, and as far as Node finds them there are names too.
  const values = [
    ...Object.values(exported),
    ...Object.values(Object(exported.default) as Record<string, unknown>),
  ];
  const modules = [...new Set(values.filter(isModule))];
  if (modules.length === 1) return modules[0]!;
  throw new LoadError(
    name,
    modules.length === 0
      ? 'exports no Nest module: export a class with @Module({ … }), as default if there are several'
      : `exports several Nest modules (${modules.map((one) => classOf(one).name).join(', ')}): export one as default`,
  );
}

/** What `@Module()` leaves on a class. */
const METADATA = ['imports', 'controllers', 'providers', 'exports'];

function isModule(value: unknown): value is Export {
  if (typeof value === 'function') return METADATA.some((key) => Reflect.hasOwnMetadata(key, value));
  return (
    typeof value === 'object' && value !== null && 'module' in value && typeof value.module === 'function'
  );
}

/** Of the nearest package.json that is not the gateway's. */
function versionAbove(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, 'package.json');
    if (existsSync(file))
      return at === realpathSync(packageRoot())
        ? null
        : ((JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version ?? null);
    if (dirname(at) === at) return null;
  }
}

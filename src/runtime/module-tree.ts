import type { DynamicModule, ForwardReference, Type } from '@nestjs/common';

/** The key of what `@Module({ imports })` was given. */
const IMPORTS = 'imports';

/** What may stand in `imports` of a module. */
export type ImportedModule = Type | DynamicModule | Promise<DynamicModule> | ForwardReference;

/**
 * A module and all that it imports, once each, before Nest makes any of them. Nest reads the same metadata later.
 *
 * @throws Error if an import is undefined, as in a circle of files
 */
export async function modulesBelow(root: ImportedModule): Promise<(Type | DynamicModule)[]> {
  const found = new Set<Type | DynamicModule>();
  const visit = async (imported: ImportedModule | undefined, by: string): Promise<void> => {
    if (imported === undefined)
      throw new Error(`an import of ${by} is undefined: the files import each other, or the name is wrong`);
    const given = await imported;
    const module = 'forwardRef' in given ? (given as ForwardReference<() => Type>).forwardRef() : given;
    if (found.has(module)) return;
    found.add(module);
    const type = typeof module === 'function' ? module : module.module;
    const fixed = (Reflect.getMetadata(IMPORTS, type) ?? []) as ImportedModule[];
    const added = typeof module === 'function' ? [] : (module.imports ?? []);
    for (const one of [...fixed, ...(added as ImportedModule[])]) await visit(one, type.name);
  };
  await visit(root, 'the application');
  return [...found];
}

/** The values that the modules provide under a token with `useValue`. */
export function valuesOf(modules: readonly (Type | DynamicModule)[], token: unknown): unknown[] {
  return modules
    .flatMap((module) => (typeof module === 'function' ? [] : (module.providers ?? [])))
    .filter((provider) => 'provide' in provider && provider.provide === token && 'useValue' in provider)
    .map((provider) => (provider as { useValue: unknown }).useValue);
}

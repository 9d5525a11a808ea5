import { Module, type ModuleMetadata } from '@nestjs/common';
import { AppModule } from '../../src/app.module.js';
import type { ImportedModule } from '../../src/runtime/module-tree.js';
import { afterFile } from './after-file.js';

type Modules = NonNullable<ModuleMetadata['imports']>;

let root: ImportedModule = AppModule;

/** Files of one worker share this root: what one of them adds must not reach the next. */
afterFile(() => {
  root = AppModule;
  return Promise.resolve();
});

/** Does what lines in src/app.module.ts do, for the gateways that this test file starts from here on. */
export function addToApp(...modules: Modules): void {
  // Not a dynamic module: Nest registers the imports of one before those of its class.
  root = class extends AppModule {};
  Module({ imports: [AppModule, ...modules] })(root);
}

/** The root module of the gateways that this test file starts. */
export function rootModule(): ImportedModule {
  return root;
}

/** Another root module for them, in place of AppModule. */
export function runAs(module: ImportedModule): void {
  root = module;
}

import type { DynamicModule, LoggerService, Type } from '@nestjs/common';
import { SETTINGS } from '../config/config.module.js';
import type { MakeApp } from '../runtime/gateway.js';

/** What the builder of `@nestjs/testing` replaces. See Nest's documentation of its testing module. */
export interface Overrides {
  overrideProvider(token: unknown): Override;
  overrideGuard(token: unknown): Override;
  overrideInterceptor(token: unknown): Override;
  overridePipe(token: unknown): Override;
  overrideFilter(token: unknown): Override;
  overrideModule(module: Type | DynamicModule): { useModule(module: Type | DynamicModule): Overrides };
}

/** By what something is replaced. */
export interface Override {
  useValue(value: unknown): Overrides;
  useClass(type: Type): Overrides;
  useFactory(options: { factory: (...args: never[]) => unknown; inject?: unknown[] }): Overrides;
}

/** Makes the application as Nest's `Test.createTestingModule()` does. */
export function withOverrides(override: (builder: Overrides) => unknown): MakeApp {
  return async (module, adapter, options) => {
    const { Test } = await import('@nestjs/testing').catch((cause: unknown) => {
      throw new Error('override needs @nestjs/testing: npm install --save-dev @nestjs/testing', { cause });
    });
    const builder = Test.createTestingModule({ imports: [module] });
    builder.setLogger(options.logger as LoggerService);
    // It makes the providers before there is an adapter, which has the settings otherwise.
    override(builder.overrideProvider(SETTINGS).useValue(adapter.settings));
    return (await builder.compile()).createNestApplication(adapter, options);
  };
}

import type { ModuleMetadata } from '@nestjs/common';
import { AppModule } from '../../src/app.module.js';
import { afterFile } from './after-file.js';

const forSettings = AppModule.forSettings.bind(AppModule);

/** Files of one worker share AppModule: what one of them adds must not reach the next. */
afterFile(() => {
  AppModule.forSettings = forSettings;
  return Promise.resolve();
});

/** Does what a line in src/app.module.ts does, for the gateways that this test file starts from here on. */
export function addToApp(...modules: NonNullable<ModuleMetadata['imports']>): void {
  AppModule.forSettings = (settings) => {
    const app = forSettings(settings);
    return { ...app, imports: [...(app.imports ?? []), ...modules] };
  };
}

import type { Command } from 'commander';
import { EnvError } from '../config/env-error.js';
import { namedModules } from '../config/named-modules.js';
import { projectApp } from '../runtime/project-app.js';
import { CliError } from './cli-error.js';

/**
 * The commands of the modules that the project in the working directory imports, and of those that MODULES names. Loads
 * Nest only if there are any.
 *
 * @throws CliError, which names the project's file or the module that cannot be loaded; EnvError
 */
export async function moduleCommands(): Promise<(() => Command)[]> {
  try {
    const names = namedModules();
    const app = await projectApp();
    if (app === null && names.length === 0) return [];
    const { withLoadedModules } = await import('../runtime/loaded-modules.js');
    const { featuresBelow } = await import('../runtime/declared-features.js');
    const root = await withLoadedModules(app ?? class NoProject {}, names);
    return (await featuresBelow(root)).flatMap(({ commands = [] }) => commands);
  } catch (error) {
    if (error instanceof EnvError) throw error;
    throw new CliError(error instanceof Error ? error.message : String(error));
  }
}

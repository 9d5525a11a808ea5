import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { directUrl } from '../../config/settings.js';
import { featuresBelow } from '../../runtime/declared-features.js';
import { projectApp } from '../../runtime/project-app.js';
import { readEnv } from '../../runtime/read-env.js';
import { cliCommand } from '../../platform/cli-command.js';
import { CliError } from '../cli-error.js';
import { type GeneratedMigration, generateMigration } from './generate-migration.js';

/** In the project's folder. */
const FOLDER = join('src', 'migrations');

/**
 * Writes a migration for the entities of the project in the working directory, as it is built, into its `src/migrations`.
 *
 * @returns its file with the folder; null if there is nothing to migrate
 * @throws CliError if there is no project, a migration of its folder is not registered, or the scratch database cannot be
 *   created
 */
export async function generateProjectMigration(
  name: string,
  report: (line: string) => void,
): Promise<GeneratedMigration | null> {
  const app = await projectApp().catch((error: Error) => {
    throw new CliError(error.message);
  });
  if (app === null)
    throw new CliError(
      `there is no project in this folder: its package.json has no "postern": { "app": "./dist/app.module.js" }. ${cliCommand('new')} ` +
        'makes a project; in a clone of Postern use npm run migration:generate',
    );
  const features = await featuresBelow(app);
  rejectUnregistered(new Set(features.flatMap(({ migrations = [] }) => migrations.map((one) => one.name))));
  const env = await readEnv(app, {});
  const server =
    env.databaseUrl === undefined ? undefined : directUrl({ ...env, databaseUrl: env.databaseUrl });
  const generated = await generateMigration({ name, folder: FOLDER, features, server, report });
  return generated && { ...generated, file: join(FOLDER, `${generated.file}.ts`) };
}

/** What a migration makes that no module brings would be generated again. */
function rejectUnregistered(registered: ReadonlySet<string>): void {
  const files = existsSync(FOLDER) ? readdirSync(FOLDER).filter((file) => file.endsWith('.ts')) : [];
  for (const file of files) {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    const [, className] = /\bclass (\w+) implements MigrationInterface\b/.exec(text) ?? [];
    if (className !== undefined && !registered.has(className))
      throw new CliError(
        `${join(FOLDER, file)}: no module brings ${className}; add it to the migrations of PosternModule.forFeature() of its ` +
          'module, build the project, and try again',
      );
  }
}

import { Command } from 'commander';
import { cliCommand } from '../../platform/cli-command.js';
import { action } from '../session.js';

/** `postern migration` */
export function migrationCommand(): Command {
  const migration = new Command('migration').description('migrations of a project of your own');
  migration
    .command('generate')
    .description('write the migration that the entities of the project need')
    .argument('<name>', 'in PascalCase, such as AddQuotas')
    .option('--json', 'print the file and the class as JSON; null if nothing has changed')
    .addHelpText(
      'after',
      `
Compares the entities of the built project with what its migrations make in a
scratch database, which is dropped again. It is created on the Postgres of
DATABASE_URL if that is set, else on an embedded one that runs meanwhile.`,
    )
    .action(
      action(async (session, _, name) => {
        session.mustBeLocal('the sources of a project');
        const { generateProjectMigration } = await import('./project-migration.js');
        const generated = await generateProjectMigration(name, (line) => session.out.progress(line));
        session.out.result(generated && { file: generated.file, class: generated.className }, () =>
          generated === null
            ? 'No changes: the migrations make what the entities of the build say. Build the project first if it has changed.'
            : `Wrote ${generated.file}. Read its SQL, then add the class to its module:

  PosternModule.forFeature({ name: '…', migrations: [${generated.className}] })

The next start of the gateway runs it, or ${cliCommand('migrate')}.`,
        );
      }),
    );
  return migration;
}

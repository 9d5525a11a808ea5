import { Command } from 'commander';
import { type OutputOptions, printJson } from './output.js';
import { migrateNow } from './with-services.js';

/** `postern migrate` */
export function migrateCommand(): Command {
  return new Command('migrate')
    .option('--json', 'print the names of the migrations that ran as JSON')
    .action(async ({ json }: OutputOptions) => {
      const ran = await migrateNow();
      if (json) printJson({ migrated: ran });
      else console.log(ran.length === 0 ? 'The database is up to date.' : `Migrated: ${ran.join(', ')}`);
    });
}

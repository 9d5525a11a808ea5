import { Command } from 'commander';
import { action } from '../session.js';

/** `postern migrate` */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description('migrate the database; only needed with MIGRATE=off')
    .option('--json', 'print the names of the migrations that ran, and of the functions applied, as JSON')
    .action(
      action(async (session) => {
        session.mustBeLocal('the database');
        const { migrateNow } = await import('../local-app.js');
        const ran = await migrateNow();
        session.out.result({ migrated: ran }, () =>
          ran.length === 0 ? 'The database is up to date.' : `Migrated: ${ran.join(', ')}`,
        );
      }),
    );
}

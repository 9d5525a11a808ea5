import { Command } from 'commander';
import { explain } from './failure.js';
import { journalCommand } from './journal.command.js';
import { keysCommand } from './keys.command.js';
import { migrateCommand } from './migrate.command.js';
import { providersCommand } from './providers.command.js';
import { requestsCommand } from './requests.command.js';
import { teamsCommand } from './teams.command.js';
import { usageCommand } from './usage.command.js';

/** The command line: the gateway's services on its database, without HTTP and whether or not the gateway runs. */
function program(): Command {
  return new Command('postern')
    .description('Manages a Postern gateway through its database, whether or not the gateway is running.')
    .addCommand(keysCommand())
    .addCommand(teamsCommand())
    .addCommand(providersCommand())
    .addCommand(requestsCommand())
    .addCommand(usageCommand())
    .addCommand(journalCommand())
    .addCommand(migrateCommand())
    .addHelpText(
      'after',
      `
The database is DATABASE_URL, else the embedded one in DATA_DIR (./data), which npm start makes. Settings come from
the environment and from .env. Exit code 0: done; 1: not done, and the reason is on standard error.
In a clone, write "npm run --silent postern --" for "postern".

Examples:
  postern keys create --team default --name ci
  postern keys list --json
  postern providers add openai --default
  postern requests list --limit 5`,
    );
}

/**
 * Runs one command to its end and leaves its outcome in the process's exit code. Help and arguments that it refuses end
 * the process at once.
 */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await program().parseAsync(args, { from: 'user' });
  } catch (error) {
    console.error(explain(error));
    process.exitCode = 1;
  }
}

import { Command } from 'commander';

/** Also what `postern` does without a command. */
export function startCommand(): Command {
  return new Command('start')
    .description('start the gateway of this folder; without DATABASE_URL with an embedded Postgres in ./data')
    .action(async () => {
      const { startProject } = await import('../../runtime/start-project.js');
      await startProject();
    });
}

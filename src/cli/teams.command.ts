import { Command } from 'commander';
import { cliCommand, shellQuoted } from '../platform/cli-command.js';
import { commandUser } from '../platform/actor.js';
import { parseInput } from '../admin/parse-input.js';
import { newTeamSchema, teamFilterSchema } from '../teams/teams.schema.js';
import { TeamsService } from '../teams/teams.service.js';
import { type OutputOptions, printJson, printPage } from './output.js';
import { shortTime } from './table.js';
import { withServices } from './with-services.js';

interface ListOptions extends OutputOptions {
  limit?: string;
  cursor?: string;
}

/** `postern teams …` */
export function teamsCommand(): Command {
  const teams = new Command('teams');

  teams
    .command('create')
    .description('create a team')
    .argument('<name>', 'team name')
    .option('--json', 'print the team as JSON')
    .addHelpText('after', '\nExample:\n  postern teams create search')
    .action(async (name: string, { json }: OutputOptions) => {
      const order = parseInput(newTeamSchema, { name });
      const team = await withServices((app) => app.get(TeamsService).create(order, commandUser()));
      if (json) printJson(team);
      else
        console.log(
          `Created team ${team.name} (${team.id}).\n` +
            `Next: ${cliCommand(`keys create --team ${shellQuoted(team.name)} --name ci`)}`,
        );
    });

  teams
    .command('list')
    .description('list teams, newest first')
    .option('--limit <n>', 'number of rows, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'continue after the previous page')
    .option('--json', 'print the page as JSON')
    .action(async ({ limit, cursor, json }: ListOptions) => {
      const filter = parseInput(teamFilterSchema, { limit, cursor });
      const page = await withServices((app) => app.get(TeamsService).list(filter));
      printPage(page, 'teams', { json }, ['NAME', 'ID', 'CREATED', 'DISABLED'], (team) => [
        team.name,
        team.id,
        shortTime(team.created_at),
        team.disabled,
      ]);
    });

  return teams;
}

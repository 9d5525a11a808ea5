import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';
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
    .description('make a team')
    .argument('<name>', 'what to call it')
    .option('--json', 'print the team as JSON')
    .addHelpText('after', '\nExample:\n  postern teams create search')
    .action(async (name: string, { json }: OutputOptions) => {
      const order = parseInput(newTeamSchema, { name });
      const team = await withServices((app) => app.get(TeamsService).create(order, commandUser()));
      if (json) printJson(team);
      else
        console.log(
          `Made the team ${team.name} (${team.id}).\nA key for it: ${cliCommand(`keys create --team ${team.name} --name ci`)}`,
        );
    });

  teams
    .command('list')
    .description('show the teams, newest first')
    .option('--limit <n>', 'how many, 1 to 500 (default 50)')
    .option('--cursor <cursor>', 'continue after the page before')
    .option('--json', 'print the page as JSON')
    .action(async ({ limit, cursor, json }: ListOptions) => {
      const filter = parseInput(teamFilterSchema, { limit, cursor });
      const page = await withServices((app) => app.get(TeamsService).list(filter));
      printPage(page, { json }, ['NAME', 'ID', 'CREATED', 'DISABLED'], (team) => [
        team.name,
        team.id,
        shortTime(team.created_at),
        team.disabled,
      ]);
    });

  return teams;
}

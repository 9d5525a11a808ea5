import type { Command } from 'commander';
import type { TeamChange, TeamView } from '../../../teams/teams.schema.js';
import type { Cell } from '../../table.js';

/** Options of teams. */
export interface ProviderRuleOptions {
  providers?: string;
  defaultProvider?: string;
}

export function addProviderRuleOptions(command: Command): Command {
  return command
    .option(
      '--providers <names>',
      'providers and routes its keys may use, separated by commas, or all: its own, and those of no team',
    )
    .option('--default-provider <name>', 'provider or route that its calls to /v1 go to, or none');
}

/** The options that were given, as fields of the admin API. */
export function providerRulesOf({
  providers,
  defaultProvider: byDefault,
}: ProviderRuleOptions): Pick<TeamChange, 'providers' | 'default_provider'> {
  return {
    ...(providers !== undefined && {
      providers: providers === 'all' ? null : providers.split(',').map((name) => name.trim()),
    }),
    ...(byDefault !== undefined && { default_provider: byDefault === 'none' ? null : byDefault }),
  };
}

/** The rules of a team, for people; no line for what is as for all teams. */
export function providerRuleLines(team: TeamView): (readonly [string, Cell])[] {
  return [
    ...(team.providers === null ? [] : [['providers', team.providers.join(',')] as const]),
    ...(team.default_provider === null ? [] : [['default provider', team.default_provider] as const]),
  ];
}

import type { ProviderView } from '../../../providers/providers.schema.js';
import type { TeamChange, TeamView } from '../../../teams/teams.schema.js';
import { path } from '../../api.js';
import { CliError } from '../../cli-error.js';
import type { Session } from '../../session.js';

const LONGEST_NAME = 63;

/** The name of the provider that a team gets from a preset: `openai-search`. @throws CliError */
export function accountName(preset: string, team: string): string {
  const suffix = team.toLowerCase().replace(/[^a-z0-9_-]+/g, '-');
  const name = `${preset}-${suffix}`;
  if (/[a-z0-9]/.test(suffix) && name.length <= LONGEST_NAME) return name;
  throw new CliError(
    `no name can be made of the team ${JSON.stringify(team)}: give the provider one, and --preset ${preset}`,
  );
}

/**
 * Lets a team use a new provider of its own, by default if it has no default yet.
 *
 * @param team as it was before
 * @param isDefault whether it replaces a default that the team has
 * @returns the team
 */
export async function admitAccount(
  { api }: Session,
  team: TeamView,
  { name }: ProviderView,
  isDefault: boolean,
): Promise<TeamView> {
  const { providers } = team;
  const change: TeamChange = {
    ...((isDefault || team.default_provider === null) && { default_provider: name }),
    ...(providers !== null && { providers: [...new Set([...providers, name])] }),
  };
  return Object.keys(change).length === 0 ? team : api.patch<TeamView>(path('teams', team.id), change);
}

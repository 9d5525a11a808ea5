import type { Settings } from '../../config/settings.js';
import type { Access } from '../access/access.js';

type Mapping = Pick<Settings, 'oidcAdmins' | 'oidcViewers' | 'oidcTeamPrefix' | 'oidcLeadPrefix'>;

/** What the groups of a user give. */
export interface GrantedRole {
  /** The highest role; null for none. */
  access: Pick<Access, 'role' | 'scope'> | null;
  /** Teams that a group names and that do not exist. */
  missing: string[];
}

/** Names of the teams that groups make somebody a lead and a member of. */
export function teamNamesOf(
  groups: readonly string[],
  { oidcTeamPrefix, oidcLeadPrefix }: Pick<Mapping, 'oidcTeamPrefix' | 'oidcLeadPrefix'>,
): { led: string[]; own: string[] } {
  const [led, own] = [oidcLeadPrefix, oidcTeamPrefix].map((prefix) =>
    prefix === undefined
      ? []
      : groups.filter((group) => group.startsWith(prefix)).map((group) => group.slice(prefix.length)),
  ) as [string[], string[]];
  return { led, own };
}

/**
 * The highest role that the groups give. A session has one role for all of its teams: who leads a team signs in as a lead, of
 * the teams that they lead only.
 *
 * @param findTeams IDs of the teams that exist, by name
 */
export async function roleOfGroups(
  groups: readonly string[],
  mapping: Mapping,
  findTeams: (names: string[]) => Promise<Map<string, string>>,
): Promise<GrantedRole> {
  const { oidcAdmins, oidcViewers } = mapping;
  if (groups.some((group) => oidcAdmins.includes(group)))
    return { access: { role: 'admin', scope: null }, missing: [] };
  if (groups.some((group) => oidcViewers.includes(group)))
    return { access: { role: 'viewer', scope: null }, missing: [] };
  const { led, own } = teamNamesOf(groups, mapping);
  const names = [...new Set([...led, ...own])];
  const found = names.length === 0 ? new Map<string, string>() : await findTeams(names);
  const missing = names.filter((name) => !found.has(name));
  for (const [role, of] of [
    ['lead', led],
    ['team', own],
  ] as const) {
    const scope = [...new Set(of)].flatMap((name) => found.get(name) ?? []);
    if (scope.length > 0) return { access: { role, scope }, missing };
  }
  return { access: null, missing };
}

/** The mapping in one line, for the log. */
export function describeMapping({
  oidcAdmins,
  oidcViewers,
  oidcTeamPrefix,
  oidcLeadPrefix,
}: Mapping): string {
  const parts = [
    oidcAdmins.length > 0 && `OIDC_ADMINS ${JSON.stringify(oidcAdmins)}`,
    oidcViewers.length > 0 && `OIDC_VIEWERS ${JSON.stringify(oidcViewers)}`,
    oidcLeadPrefix !== undefined && `OIDC_LEAD_PREFIX ${JSON.stringify(oidcLeadPrefix)}`,
    oidcTeamPrefix !== undefined && `OIDC_TEAM_PREFIX ${JSON.stringify(oidcTeamPrefix)}`,
  ];
  return parts.filter((part) => part !== false).join(', ');
}

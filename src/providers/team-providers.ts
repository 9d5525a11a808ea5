import type { EntityManager } from 'typeorm';
import { isUuid } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import { DEFAULT_PROVIDER } from './provider-name.js';

/** A lock that lets other changes of the team go on, but not its end. */
const FIND_TEAM = 'SELECT id FROM team WHERE $1 = CASE WHEN $2 THEN id::text ELSE name END FOR KEY SHARE';

/** Providers and routes that are for certain teams: of a route, those of its targets. No key may use what is for two. */
const OF_TEAMS = `
  SELECT name, is_default, ARRAY[team_id] AS teams FROM provider WHERE team_id IS NOT NULL
  UNION ALL
  SELECT r.name, r.is_default, array_agg(DISTINCT p.team_id)
  FROM route r CROSS JOIN LATERAL jsonb_array_elements(r.targets) AS target
  JOIN provider p ON p.name = target ->> 'provider'
  WHERE p.team_id IS NOT NULL
  GROUP BY r.id`;

/** $1: ID of a team; null: of one that has none yet. */
const USABLE = `
  SELECT name FROM (SELECT name FROM provider UNION ALL SELECT name FROM route) AS named
  WHERE NOT EXISTS (SELECT FROM (${OF_TEAMS}) AS o
                    WHERE o.name = named.name AND o.teams IS DISTINCT FROM ARRAY[$1::uuid])
  ORDER BY name`;

const UNSUITABLE = `
  SELECT * FROM (
    SELECT name, is_default, cardinality(teams) AS teams,
           ARRAY(SELECT t.name FROM team t WHERE t.default_provider = o.name AND o.teams <> ARRAY[t.id] ORDER BY t.name) AS defaults
    FROM (${OF_TEAMS}) AS o) AS found
  WHERE is_default OR teams > 1 OR cardinality(defaults) > 0
  ORDER BY name LIMIT 1`;

const TEAMS_BY_DEFAULT = 'SELECT name FROM team WHERE default_provider = $1 ORDER BY name';

/**
 * The ID of a team by its name or ID. The lock of the changes of providers is taken before.
 *
 * @throws ServiceError not_found
 */
export async function teamIdOf(manager: EntityManager, nameOrId: string): Promise<string> {
  const isId = isUuid(nameOrId);
  const [team] = await manager.query<{ id: string }[]>(FIND_TEAM, [
    isId ? nameOrId.toLowerCase() : nameOrId,
    isId,
  ]);
  if (team !== undefined) return team.id;
  throw ServiceError.of(
    'not_found',
    'team',
    'no team has this name or id; list the teams, or create it first',
  );
}

/**
 * Checks names that the keys of a team are limited to, or sent to: each must be a provider or route that belongs to no other
 * team. `default` is always known: the command line may run without the gateway's PROVIDER_URL.
 *
 * @param team its ID, null for one that is being created, and the names that it is limited to itself
 * @throws ServiceError invalid, naming those that the team may use
 */
export async function mustBeUsable(
  manager: EntityManager,
  { id, providers: most }: { id: string | null; providers: readonly string[] | null },
  names: readonly string[] | null | undefined,
  field = 'providers',
): Promise<void> {
  if (names == null) return;
  const found = await manager.query<{ name: string }[]>(USABLE, [id]);
  const usable = [DEFAULT_PROVIDER, ...found.map(({ name }) => name)].filter(
    (name) => most === null || most.includes(name),
  );
  const others = names.filter((name) => !usable.includes(name));
  if (others.length === 0) return;
  throw ServiceError.of(
    'invalid',
    field,
    `there is no provider or route ${others.join(', ')} that this team may use; add it first, or choose from ${usable.join(', ')}`,
  );
}

/**
 * Checks providers, routes and teams after a change of one of them, in the same transaction.
 *
 * @param field of the change
 * @throws ServiceError conflict if there is a default of all teams that is for one team, a route that no key could use, or a
 *   default of a team that is for another team
 */
export async function mustSuitTeams(manager: EntityManager, field: string): Promise<void> {
  const [found] =
    await manager.query<{ name: string; is_default: boolean; teams: number; defaults: string[] }[]>(
      UNSUITABLE,
    );
  if (found === undefined) return;
  const { name, is_default: isDefault, teams, defaults } = found;
  throw ServiceError.of(
    'conflict',
    field,
    isDefault
      ? `${name} would be for one team, but is the default of all teams; make another the default first`
      : teams > 1
        ? `the route ${name} would send calls to providers of ${teams} teams, so that no key could use it; change the route first`
        : `${name} would be for another team, but is the default_provider of ${defaults.join(', ')}; change that first`,
  );
}

/** @throws ServiceError conflict if calls of a team go to this provider or route by default */
export async function mustBeNoDefaultOfTeam(manager: EntityManager, name: string): Promise<void> {
  const teams = await manager.query<{ name: string }[]>(TEAMS_BY_DEFAULT, [name]);
  if (teams.length === 0) return;
  throw ServiceError.of(
    'conflict',
    'name',
    `this is the default_provider of teams; change them first: ${teams.map((team) => team.name).join(', ')}`,
  );
}

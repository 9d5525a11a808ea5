import type { EntityManager } from 'typeorm';
import type { Scope } from '../admin/access/access.js';
import { isUuid } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';

/** The name of the group of a team, for a query that reads the team. @param id the column with the group's ID */
export const groupNameSql = (id: string) => `SELECT name FROM team_group WHERE id = ${id}`;

/** The names of the teams of a group, as an array. @param id the column with the group's ID */
export const teamsOfGroupSql = (id: string) =>
  `ARRAY(SELECT name FROM team WHERE group_id = ${id} ORDER BY name COLLATE "C")`;

/** The group of each team that is in one: `team_id`, `team_group`. */
export const TEAM_GROUPS = `
  SELECT t.id AS team_id, g.name AS team_group FROM team t JOIN team_group g ON g.id = t.group_id`;

const FIND = `
  SELECT id FROM team_group WHERE $1 = CASE WHEN $2 THEN id::text ELSE name END
    AND ($3::uuid[] IS NULL OR EXISTS (SELECT FROM team WHERE group_id = team_group.id AND id = ANY ($3)))`;
const TEAMS = `SELECT id FROM team WHERE group_id = $1 ORDER BY id`;
/** In the order of their IDs, so that two changes do not wait for each other. */
const LOCK = 'SELECT id FROM team_group WHERE id = ANY ($1) ORDER BY id FOR UPDATE';
const RAISE = 'UPDATE team_group SET version = version + 1 WHERE id = ANY ($1)';

/**
 * Finds a group by name or ID. No name looks like an ID, so the result is unambiguous.
 *
 * @param scope of these teams: groups of others are not found
 * @returns its ID
 * @throws ServiceError not_found
 */
export async function groupIdOf(
  manager: EntityManager,
  nameOrId: string,
  scope: Scope = null,
): Promise<string> {
  const [group] = await manager.query<{ id: string }[]>(FIND, [
    isUuid(nameOrId) ? nameOrId.toLowerCase() : nameOrId,
    isUuid(nameOrId),
    scope,
  ]);
  if (group !== undefined) return group.id;
  throw noGroup();
}

/** IDs of the teams in a group. */
export async function teamsOfGroup(manager: EntityManager, groupId: string): Promise<string[]> {
  const teams = await manager.query<{ id: string }[]>(TEAMS, [groupId]);
  return teams.map(({ id }) => id);
}

/**
 * Locks groups until the end of the transaction, and raises their versions: a team that joins or leaves changes both.
 * Lock the teams first; whoever changes groups takes the locks in this order.
 *
 * @throws ServiceError not_found if one of them was removed meanwhile
 */
export async function raiseGroups(manager: EntityManager, ids: readonly (string | null)[]): Promise<void> {
  const wanted = [...new Set(ids.filter((id) => id !== null))];
  if (wanted.length === 0) return;
  const found = await lockGroups(manager, wanted);
  if (found.length < wanted.length) throw noGroup();
  await manager.query(RAISE, [wanted]);
}

/** @returns IDs of those that exist */
export async function lockGroups(manager: EntityManager, ids: readonly string[]): Promise<string[]> {
  const groups = await manager.query<{ id: string }[]>(LOCK, [ids]);
  return groups.map(({ id }) => id);
}

function noGroup(): ServiceError {
  return ServiceError.of(
    'not_found',
    'group',
    'no group has this name or id; list the groups, or create it first',
  );
}

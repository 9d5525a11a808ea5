import type { GroupView } from '../../../groups/groups.schema.js';
import type { TeamView } from '../../../teams/teams.schema.js';
import { type Api, path } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { findKey, findOwner } from '../../lookup.js';
import type { noteBefore } from '../options/budget-note.js';

/** Whose limits a command shows or changes. */
export interface LimitOwner {
  /** Where the API has its limits. */
  path: string;
  /** As people call it: "team search". */
  name: string;
  /** IDs, and the name of the group; null for none. */
  key: string | null;
  team: string | null;
  group: string | null;
  /** As what was used before is found. */
  noted: Parameters<typeof noteBefore>[1];
}

/**
 * The owner that people mean: `installation`, `group dev`, `team search`, `key search/ci`, or a team or key without that
 * word.
 *
 * @throws CliError
 */
export async function findLimitOwner(api: Api, words: readonly string[]): Promise<LimitOwner> {
  const [first, second] = words;
  if (words.length === 1 && first === 'installation')
    return {
      ...{ path: 'limits/installation', name: 'the installation', key: null, team: null, group: null },
      noted: { scope: 'installation' },
    };
  if (words.length === 2 && first === 'group') {
    const { id, name } = await api.get<GroupView>(path('groups', second!));
    return {
      ...{ path: path('groups', id), name: `group ${name}`, key: null, team: null, group: name },
      noted: { scope: 'group', group: name },
    };
  }
  if (words.length === 2 && first === 'team') return teamOwner(await api.get(path('teams', second!)));
  const key =
    words.length === 2 && first === 'key'
      ? await findKey(api, second!)
      : words.length === 1
        ? (await findOwner(api, first!)).key
        : undefined;
  if (key === undefined)
    throw new CliError(
      'name one owner: a team or key, or one of: team, key or group with its name; installation',
    );
  if (key === null) return teamOwner(await api.get(path('teams', first!)));
  const { group } = await api.get<TeamView>(path('teams', key.team_id));
  return {
    ...{
      path: path('keys', key.id),
      name: `key ${key.team}/${key.name}`,
      key: key.id,
      team: key.team_id,
      group,
    },
    noted: { key: key.id },
  };
}

function teamOwner({ id, name, group }: TeamView): LimitOwner {
  return {
    ...{ path: path('teams', id), name: `team ${name}`, key: null, team: id, group },
    noted: { team: id },
  };
}

import { z } from 'zod';
import {
  name,
  pageOf,
  paging,
  searchText,
  shownId,
  team,
  timestamp,
  version,
} from '../admin/fields.schema.js';
import { sharedLimitMembers, shownLimitMembers } from '../limit-rules/limit-rules.schema.js';
import { annotationsChange, annotationsView, newAnnotations } from '../teams/annotations.js';

const MAX_TEAMS = 1_000;
const TEAMS = 'must be a list of names or IDs of teams';
const TEAMS_ABOUT = 'A team that is in another group leaves it.';
const NAME_ABOUT = 'Unique name of the group.';

const teams = z.array(team(), TEAMS).max(MAX_TEAMS, `must not name more than ${MAX_TEAMS} teams`);

/** A group as the API shows it. */
export const groupSchema = z
  .strictObject({
    id: shownId('the group'),
    name: z.string().meta({ description: NAME_ABOUT, example: 'dev' }),
    note: annotationsView.note,
    teams: z
      .array(z.string())
      .meta({ description: 'Names of its teams, sorted.', example: ['ranking', 'search'] }),
    ...shownLimitMembers,
    version: version(),
    created_at: timestamp('When the group was created.'),
  })
  .meta({ id: 'Group' });
export type GroupView = z.output<typeof groupSchema>;

export const groupPageSchema = pageOf('GroupPage', groupSchema);

/** `POST /admin/v1/groups` and `postern groups create` */
export const newGroupSchema = z
  .strictObject({
    name: name().meta({ description: NAME_ABOUT, example: 'dev' }),
    note: newAnnotations.note,
    ...sharedLimitMembers,
    teams: teams
      .default([])
      .meta({ description: `Its teams, by name or ID. ${TEAMS_ABOUT}`, example: ['search', 'ranking'] }),
  })
  .meta({ id: 'NewGroup', example: { name: 'dev', teams: ['search', 'ranking'] } });
export type NewGroup = z.output<typeof newGroupSchema>;

/** `PATCH /admin/v1/groups/:id` */
export const groupChangeSchema = z
  .strictObject({
    name: name().optional().meta({ description: 'New unique name of the group.', example: 'dev' }),
    note: annotationsChange.note,
    ...sharedLimitMembers,
    teams: teams.optional().meta({
      description: `All its teams, by name or ID: others leave the group. ${TEAMS_ABOUT}`,
      example: ['search', 'ranking'],
    }),
  })
  .meta({ id: 'GroupChange', example: { teams: ['search', 'ranking'] } });
export type GroupChange = z.output<typeof groupChangeSchema>;

/** `GET /admin/v1/groups` and `postern groups list` */
export const groupFilterSchema = z.strictObject({
  search: searchText('must be a part of a name').optional().meta({
    description: 'Only groups in whose name each of these words occurs, in any case.',
    example: 'dev',
  }),
  ...paging,
});
export type GroupFilter = z.output<typeof groupFilterSchema>;

/** A group in a path. It is not validated: anything that names no group is not found. */
export const groupInPath = z.string().meta({ description: 'Name or ID of the group.', example: 'dev' });

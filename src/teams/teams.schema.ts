import { z } from 'zod';
import {
  flag,
  name,
  pageOf,
  paging,
  searchText,
  shownId,
  timestamp,
  version,
} from '../admin/fields.schema.js';
import { annotationFilters, annotationsChange, annotationsView, newAnnotations } from './annotations.js';
import { modelRulesChange, modelRulesView, newModelRules } from './model-rules.js';
import { claudeCodeChange, claudeCodeView } from './claude-code.js';
import { signInChange, signInView } from './sign-in.js';
import { providerRulesChange, providerRulesView } from './provider-rules.js';
import { selfServiceChange, selfServiceView } from './self-service.js';
import { limitMembers, shownLimitMembers } from '../limit-rules/limit-rules.schema.js';

const GROUP = 'Name of its group; null for none. The teams of a group share its limits.';
const GROUP_CHANGE = 'Name or ID of its group; null for none. A team is in at most one group.';

const group = searchText('must be the name or the id of a group, or null for none').nullable();

const DISABLED = 'All keys of a disabled team are rejected.';

/** A team as the API shows it. */
export const teamSchema = z
  .strictObject({
    id: shownId('the team'),
    name: z.string().meta({ description: 'Unique name of the team.', example: 'search' }),
    disabled: z.boolean().meta({ description: DISABLED, example: false }),
    group: z.string().nullable().meta({ description: GROUP, example: 'dev' }),
    ...modelRulesView,
    ...providerRulesView,
    ...shownLimitMembers,
    ...annotationsView,
    ...selfServiceView,
    ...signInView,
    ...claudeCodeView,
    version: version(),
    created_at: timestamp('When the team was created.'),
  })
  .meta({ id: 'Team' });
export type TeamView = z.output<typeof teamSchema>;

export const teamPageSchema = pageOf('TeamPage', teamSchema);

/** `POST /admin/v1/teams` and `postern teams create` */
export const newTeamSchema = z
  .strictObject({
    name: name().meta({ description: 'Unique name of the team.', example: 'search' }),
    group: group.default(null).meta({ description: GROUP_CHANGE, example: 'dev' }),
    ...newModelRules,
    ...providerRulesChange,
    ...limitMembers,
    ...newAnnotations,
    ...selfServiceChange,
    ...signInChange,
    ...claudeCodeChange,
  })
  .meta({ id: 'NewTeam', example: { name: 'search' } });
export type NewTeam = z.output<typeof newTeamSchema>;

/** `PATCH /admin/v1/teams/:id` */
export const teamChangeSchema = z
  .strictObject({
    name: name().optional().meta({ description: 'New unique name of the team.', example: 'search' }),
    disabled: flag().optional().meta({ description: DISABLED }),
    group: group.optional().meta({ description: GROUP_CHANGE, example: 'dev' }),
    ...modelRulesChange,
    ...providerRulesChange,
    ...limitMembers,
    ...annotationsChange,
    ...selfServiceChange,
    ...signInChange,
    ...claudeCodeChange,
  })
  .meta({ id: 'TeamChange', example: { disabled: true } });
export type TeamChange = z.output<typeof teamChangeSchema>;

/** `GET /admin/v1/teams` and `postern teams list` */
export const teamFilterSchema = z.strictObject({
  search: searchText('must be a part of a name').optional().meta({
    description: 'Only teams in whose name each of these words occurs, in any case.',
    example: 'sea',
  }),
  group: searchText('must be the name or the id of a group')
    .optional()
    .meta({ description: 'Only teams of this group, by name or ID.', example: 'dev' }),
  ...annotationFilters('teams'),
  ...paging,
});
export type TeamFilter = z.output<typeof teamFilterSchema>;

/** A team in a path. It is not validated: anything that names no team is not found. */
export const teamInPath = z.string().meta({ description: 'Name or ID of the team.', example: 'search' });

import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { recordChange } from '../audit/record-change.js';
import { shownLimits, withoutLimits } from '../limit-rules/stored-rules.js';
import type { Actor } from '../platform/actor.js';
import { annotationsOf, type Annotations, withAnnotationColumns } from './annotations.js';
import { shownSelfService } from './self-service.js';
import { shownClaudeCode } from './claude-code.js';
import { shownSignIn } from './sign-in.js';
import { Team } from './team.entity.js';
import type { TeamChange, TeamView } from './teams.schema.js';

/** What a team can be created with, apart from its limits. */
export type NewTeam = Pick<
  TeamChange,
  | 'models'
  | 'stream_usage'
  | 'providers'
  | 'default_provider'
  | 'self_service'
  | 'sign_in'
  | 'claude_code'
  | keyof Annotations
> & {
  name: string;
  /** ID of its group. */
  groupId?: string | null;
};

/** Inserts a team with an audit entry. `manager` must belong to a transaction. */
export async function insertTeam(
  manager: EntityManager,
  team: NewTeam,
  by: Actor,
  saveLimits?: (id: string) => Promise<void>,
): Promise<TeamView> {
  const id = uuidv7();
  await manager.insert(Team, { id, ...columnsOf(team) });
  await saveLimits?.(id);
  const after = teamView(await manager.findOneByOrFail(Team, { id }));
  await recordChange(manager, by, { action: 'created', type: 'team', before: null, after });
  return after;
}

/** TypeORM leaves out what is undefined. */
export function columnsOf(change: Omit<TeamChange, 'group'> & Pick<NewTeam, 'groupId'>): Partial<Team> {
  const { stream_usage, default_provider, self_service, sign_in, claude_code, ...others } =
    withAnnotationColumns(withoutLimits(change));
  return {
    ...others,
    streamUsage: stream_usage,
    defaultProvider: default_provider,
    selfService: self_service,
    signIn: sign_in,
    claudeCode: claude_code,
  };
}

/** Lists each field, so that a new column is not shown by accident. */
export function teamView(team: Team): TeamView {
  return {
    id: team.id,
    name: team.name,
    disabled: team.disabled,
    group: team.group,
    models: team.models,
    stream_usage: team.streamUsage,
    providers: team.providers,
    default_provider: team.defaultProvider,
    ...shownLimits(team.rules, 'team'),
    ...annotationsOf(team),
    self_service: team.selfService && shownSelfService(team.selfService),
    sign_in: team.signIn && shownSignIn(team.signIn),
    claude_code: team.claudeCode && shownClaudeCode(team.claudeCode),
    version: team.version,
    created_at: team.createdAt.toISOString(),
  };
}

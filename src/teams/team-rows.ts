import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { recordChange } from '../audit/record-change.js';
import { type RuleValues, rulesSql, shownLimits } from '../limit-rules/stored-rules.js';
import type { Actor } from '../platform/actor.js';
import type { ModelRules } from './model-rules.js';
import { type SelfService, shownSelfService } from './self-service.js';
import type { TeamView } from './teams.schema.js';

export type TeamRow = Omit<TeamView, 'created_at' | 'limits' | 'budgets' | 'each_end_user'> & {
  created_at: Date;
  rules: RuleValues[] | null;
};

export const SELECT_TEAMS = `
  SELECT id, name, disabled, models, stream_usage, self_service, version, created_at, ${rulesSql('team.id')} FROM team`;

const INSERT_TEAM =
  'INSERT INTO team (id, name, models, stream_usage, self_service) VALUES ($1, $2, $3, $4, $5)';
const FIND_TEAM = `${SELECT_TEAMS} WHERE id = $1`;

/** What a team can be created with, apart from its limits. */
export type NewTeam = { name: string; self_service?: SelfService | null | undefined } & Partial<ModelRules>;

/** Inserts a team with an audit entry. `manager` must belong to a transaction. */
export async function insertTeam(
  manager: EntityManager,
  { name, models, stream_usage, self_service }: NewTeam,
  by: Actor,
  saveLimits?: (id: string) => Promise<void>,
): Promise<TeamView> {
  const id = uuidv7();
  await manager.query(INSERT_TEAM, [
    id,
    name,
    models ?? null,
    stream_usage ?? 'as_sent',
    self_service ?? null,
  ]);
  await saveLimits?.(id);
  const [row] = await manager.query<[TeamRow]>(FIND_TEAM, [id]);
  const team = teamView(row);
  await recordChange(manager, by, { action: 'created', type: 'team', before: null, after: team });
  return team;
}

/** Lists each field, so that a new column is not shown by accident. */
export function teamView(row: TeamRow): TeamView {
  return {
    id: row.id,
    name: row.name,
    disabled: row.disabled,
    models: row.models,
    stream_usage: row.stream_usage,
    ...shownLimits(row.rules, 'team'),
    self_service: row.self_service && shownSelfService(row.self_service),
    version: row.version,
    created_at: row.created_at.toISOString(),
  };
}

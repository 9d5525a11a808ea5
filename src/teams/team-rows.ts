import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { recordChange } from '../audit/record-change.js';
import { type RuleValues, rulesSql, shownLimits } from '../limit-rules/stored-rules.js';
import type { Actor } from '../platform/actor.js';
import type { ModelRules } from './model-rules.js';
import type { TeamView } from './teams.schema.js';

export type TeamRow = Omit<TeamView, 'created_at' | 'limits' | 'budgets' | 'each_end_user'> & {
  created_at: Date;
  rules: RuleValues[] | null;
};

export const SELECT_TEAMS = `
  SELECT id, name, disabled, models, stream_usage, version, created_at, ${rulesSql('team.id')} FROM team`;

const INSERT_TEAM = 'INSERT INTO team (id, name, models, stream_usage) VALUES ($1, $2, $3, $4)';
const FIND_TEAM = `${SELECT_TEAMS} WHERE id = $1`;

/** Inserts a team with an audit entry. `manager` must belong to a transaction. */
export async function insertTeam(
  manager: EntityManager,
  { name, models, stream_usage }: { name: string } & Partial<ModelRules>,
  by: Actor,
  saveLimits?: (id: string) => Promise<void>,
): Promise<TeamView> {
  const id = uuidv7();
  await manager.query(INSERT_TEAM, [id, name, models ?? null, stream_usage ?? 'as_sent']);
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
    version: row.version,
    created_at: row.created_at.toISOString(),
  };
}

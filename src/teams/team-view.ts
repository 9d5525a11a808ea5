import { type RuleValues, rulesSql, shownLimits } from '../limit-rules/stored-rules.js';
import type { TeamView } from './teams.schema.js';

export type TeamRow = Omit<TeamView, 'created_at' | 'limits' | 'budgets' | 'each_end_user'> & {
  created_at: Date;
  rules: RuleValues[] | null;
};

export const SELECT_TEAMS = `
  SELECT id, name, disabled, models, stream_usage, version, created_at, ${rulesSql('team.id')} FROM team`;

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

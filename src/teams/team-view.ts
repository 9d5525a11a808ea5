import type { TeamView } from './teams.schema.js';

export type TeamRow = Omit<TeamView, 'created_at'> & { created_at: Date };

export const SELECT_TEAMS = 'SELECT id, name, disabled, models, stream_usage, version, created_at FROM team';

/** Lists each field, so that a new column is not shown by accident. */
export function teamView(row: TeamRow): TeamView {
  return {
    id: row.id,
    name: row.name,
    disabled: row.disabled,
    models: row.models,
    stream_usage: row.stream_usage,
    version: row.version,
    created_at: row.created_at.toISOString(),
  };
}

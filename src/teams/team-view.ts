import type { TeamView } from './teams.schema.js';

export type TeamRow = Omit<TeamView, 'created_at'> & { created_at: Date };

export const SELECT_TEAMS = 'SELECT id, name, disabled, version, created_at FROM team';

/** Field by field, so that a new column is shown only when somebody decided so. */
export function teamView(row: TeamRow): TeamView {
  return {
    id: row.id,
    name: row.name,
    disabled: row.disabled,
    version: row.version,
    created_at: row.created_at.toISOString(),
  };
}

/** A team as people and programs see it. */
export interface TeamView {
  id: string;
  name: string;
  disabled: boolean;
  /** Goes up with every change. */
  version: number;
  /** ISO 8601 in UTC */
  created_at: string;
}

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

import type { ToDomain } from './column-domains.js';

/**
 * When a column is set. `begin`, `end` and `usage` are the journal records that carry it, of which a later one overrides
 * an earlier one; `write`: the log writer sets it when it hands the row to Postgres.
 */
export type Phase = 'begin' | 'end' | 'usage' | 'write';

export interface Column<T> {
  /** SQL type, as in the migrations. */
  readonly type:
    | 'timestamptz'
    | 'uuid'
    | 'text'
    | 'boolean'
    | 'smallint'
    | 'int'
    | 'bigint'
    | 'bigint[]'
    | 'real'
    | 'numeric'
    | 'inet'
    | 'jsonb';
  /** Empty: Postgres sets the column. */
  readonly phases: readonly Phase[];
  /** Brings any value into the column's domain, so that no input can make Postgres reject a row. */
  readonly toDomain: ToDomain<T>;
  /** Shown in OpenAPI and in docs/reference/request-log-columns.md. */
  readonly description: string;
  /** What null means. Undefined: the column is NOT NULL. */
  readonly nullMeans?: string;
  /** The only values that the column takes. */
  readonly values?: readonly string[];
  readonly example?: string | number;
}

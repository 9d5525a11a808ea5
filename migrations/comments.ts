import type { QueryRunner } from 'typeorm';
import { COLUMNS, describeColumn } from '../src/request-log/columns.js';

/** What a table or a view holds, and what those of its columns hold whose names do not say it. */
export interface Comments {
  readonly kind: 'TABLE' | 'VIEW';
  readonly about: string;
  readonly columns: Readonly<Record<string, string>>;
}

/**
 * Writes comments, which `\d+` in psql and reporting tools show.
 *
 * @param remove true: removes them
 */
export async function comment(
  queryRunner: QueryRunner,
  name: string,
  { kind, about, columns }: Comments,
  remove = false,
): Promise<void> {
  const value = (text: string) => (remove ? 'NULL' : `'${text.replaceAll("'", "''")}'`);
  await queryRunner.query(`COMMENT ON ${kind} ${name} IS ${value(about)}`);
  for (const [column, text] of Object.entries(columns))
    await queryRunner.query(`COMMENT ON COLUMN ${name}."${column}" IS ${value(text)}`);
}

/** Repeated in the entity; a test compares them. */
const REQUEST_LOG_ABOUT = 'One row for each forwarded call, partitioned by the UTC day of started_at.';

/**
 * Writes the comments of the columns of `request_log` that there are at this point, from the list of columns. A migration
 * that adds a column, or changes what one holds, calls it again.
 */
export async function commentOnRequestLog(queryRunner: QueryRunner, remove = false): Promise<void> {
  const rows = (await queryRunner.query(
    `SELECT attname AS name FROM pg_attribute
     WHERE attrelid = 'request_log'::regclass AND attnum > 0 AND NOT attisdropped`,
  )) as { name: string }[];
  const known = rows.map(({ name }) => name).filter((name): name is keyof typeof COLUMNS => name in COLUMNS);
  const columns = Object.fromEntries(known.map((name) => [name, describeColumn(name)]));
  await comment(queryRunner, 'request_log', { kind: 'TABLE', about: REQUEST_LOG_ABOUT, columns }, remove);
}

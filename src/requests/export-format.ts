import { stringify } from 'csv-stringify/sync';
import type { QueryArrayResult } from 'pg';
import { columnsOfType, type RequestView, selectList, SHOWN_COLUMNS } from './request-view.js';
import type { ExportFormat } from './requests.schema.js';

export interface ExportFormatter {
  contentType: string;
  /** The SELECT list and what surrounds it, given the rest of the query. */
  select(rest: string): string;
  /** Text before the first row. */
  head: string;
  /** Formats rows of the statement, whose values are text. */
  text(rows: QueryArrayResult<(string | null)[]>['rows']): string;
  /** Formats rows of an archive in the same way. */
  archived(rows: readonly RequestView[]): string;
}

const BOOLEANS = new Set(columnsOfType('boolean'));
/** Times as the admin API writes them. */
const TIMES = new Set(columnsOfType('timestamptz'));
const iso = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${column}`;

/** Text in JSON, as in the list. */
const NUMERICS = new Set([...columnsOfType('numeric'), ...columnsOfType('bigint[]')]);

const JSON_LIST = selectList((column) => {
  if (TIMES.has(column)) return iso(column);
  return NUMERICS.has(column) ? `${column}::text` : column;
});
const CSV_LIST = selectList((column) => {
  if (TIMES.has(column)) return iso(column);
  // Postgres itself would write t and f.
  return BOOLEANS.has(column) ? `${column}::text` : column;
});

/** A value of a row as Postgres writes it as text. */
function asText(value: RequestView[keyof RequestView]): string | null {
  if (value === null || typeof value !== 'object') return value === null ? null : String(value);
  // Of an object, as `jsonb` writes it.
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${JSON.stringify(member)}`,
  );
  return `{${members.join(', ')}}`;
}

/**
 * Formats rows as text, for programs or for spreadsheets. Postgres does most of the work: parsing and formatting a million
 * rows here would take half a minute of the process that forwards calls.
 */
export const FORMATTERS: Record<ExportFormat, ExportFormatter> = {
  /** One JSON object per line, the same as in the list: exact, for programs. */
  ndjson: {
    contentType: 'application/x-ndjson; charset=utf-8',
    select: (rest) =>
      `SELECT row_to_json(log)::text FROM (SELECT ${JSON_LIST} FROM request_log ${rest}) AS log`,
    head: '',
    text: (rows) => rows.map(([line]) => `${line}\n`).join(''),
    archived: (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
  },
  /**
   * RFC 4180 except for the plain line feed, which every reader accepts and Unix tools prefer; null is an empty field.
   * Cells that a spreadsheet would run as a formula get a `'` in front: paths, models and user agents come from clients
   * (OWASP, "CSV Injection"). For exact values, use ndjson.
   */
  csv: {
    contentType: 'text/csv; charset=utf-8; header=present',
    select: (rest) => `SELECT ${CSV_LIST} FROM request_log ${rest}`,
    head: `${SHOWN_COLUMNS.join(',')}\n`,
    text: (rows) => stringify(rows, { escape_formulas: true }),
    archived: (rows) =>
      stringify(
        rows.map((row) => SHOWN_COLUMNS.map((name) => asText(row[name]))),
        { escape_formulas: true },
      ),
  },
};

import type { ClientBase } from 'pg';
import { DAY_MS, type Day } from './partition-day.js';

/** A partition of `request_log` with bounds, in Unix milliseconds. */
export interface Partition {
  /** Quoted where needed. */
  table: string;
  from: number;
  to: number;
}

// By their bounds, whatever their names: somebody may have attached one by hand. pg_get_expr writes bounds in the
// session's time zone and date style, and the cast back reads them in the same.
const LIST = `
  SELECT c.oid::regclass::text AS "table",
         COALESCE(extract(epoch FROM substring(bound, 'FROM \\(''([^'']+)''\\)')::timestamptz)::float8 * 1000, '-Infinity') AS "from",
         COALESCE(extract(epoch FROM substring(bound, 'TO \\(''([^'']+)''\\)')::timestamptz)::float8 * 1000, 'Infinity') AS "to"
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS bound
  WHERE i.inhparent = 'request_log'::regclass AND bound <> 'DEFAULT'
  ORDER BY 2`;

/** Every partition but the default one, oldest first. */
export async function listPartitions(client: ClientBase): Promise<Partition[]> {
  return (await client.query<Partition>(LIST)).rows;
}

export function covers(partitions: readonly Partition[], day: Day): boolean {
  // Overlap is enough: beside a partition of a month made by hand no day of it can be made.
  return partitions.some(({ from, to }) => from < day + DAY_MS && to > day);
}

export async function isDefaultEmpty(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ some: boolean }>(
    'SELECT EXISTS (SELECT FROM request_log_default) AS some',
  );
  return !rows[0]!.some;
}

const NEXT_IN_DEFAULT = `
  SELECT extract(epoch FROM date_trunc('day', min(started_at), 'UTC'))::float8 * 1000 AS day
  FROM request_log_default WHERE started_at >= to_timestamp($1)`;

/** The days of which the default partition holds rows: one look into its index for each. */
export async function daysInDefault(client: ClientBase): Promise<Day[]> {
  const days: Day[] = [];
  for (let from = -Infinity; ;) {
    const { rows } = await client.query<{ day: Day | null }>(NEXT_IN_DEFAULT, [from / 1_000]);
    const day = rows[0]!.day;
    if (day === null) return days;
    days.push(day);
    from = day + DAY_MS;
  }
}

const SUMMARIZE = `
  SELECT brin_summarize_new_values(i.indexrelid)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
  WHERE i.indrelid = $1::regclass AND a.amname = 'brin'`;

/**
 * For days that are over. A BRIN index leaves its last, half-full range to be read at each search, and nothing but this
 * ever closes it (PostgreSQL, "BRIN Index Maintenance"); over months of days that makes most of the reading.
 */
export async function closeRanges(client: ClientBase, table: string): Promise<void> {
  await client.query(SUMMARIZE, [table]);
}

import type { ClientBase } from 'pg';
import type { EntityManager } from 'typeorm';
import { SERVER_STARTED } from '../database/known-ends/known-ends.js';

/** An entry of the audit log as Postgres has it. */
export interface EntryRow {
  id: string;
  /** When it was recorded by Postgres's clock, with microseconds: changes of one subject, which lock it, in their order. */
  at: string;
  actor: string;
  client_ip: string | null;
  action: string;
  subject_type: string;
  subject_id: string;
  subject_name: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** Notified with each entry. */
export const ENTRIES_CHANNEL = 'postern_audit';

/** Entries of one read. */
export const ENTRIES_AT_ONCE = 1_000;

/**
 * As JSON text: numbers and times stay what they are. A transaction that began before the last read may have ended after it,
 * hence the overlap. The clock of another server may be behind.
 */
const READ = {
  // Prepared: every process reads them every 2 seconds, and the plan takes longer than its execution.
  name: 'postern-read-entries',
  text: `
    SELECT ${SERVER_STARTED} AS server, clock_timestamp()::text AS now,
      (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms,
      ARRAY(
        SELECT row_to_json(audit_log)::text FROM audit_log
        WHERE at > LEAST($1::timestamptz, statement_timestamp()) - make_interval(secs => $2) AND id <> ALL ($3::uuid[])
        ORDER BY id LIMIT ${ENTRIES_AT_ONCE}) AS entries`,
};

const MISSING = `
  SELECT known.id FROM unnest($1::uuid[]) AS known (id)
  WHERE NOT EXISTS (SELECT FROM audit_log WHERE audit_log.id = known.id)`;

const PUT_BACK = `
  INSERT INTO audit_log SELECT (json_populate_record(NULL::audit_log, $1::json)).* ON CONFLICT (id) DO NOTHING RETURNING id`;

const IS_SET_LATER = `
  SELECT EXISTS (
    SELECT FROM audit_log WHERE subject_id = $1 AND (at, id) > ($2::timestamptz, $3::uuid) AND after ? $4) AS later`;

/** Entries that were read, and when. */
export interface ReadEntries {
  /** The Postgres server, as SERVER_STARTED says it. */
  server: string;
  /** By its clock. */
  now: string;
  now_ms: number;
  /** The rows as JSON, in the order of their IDs; at most ENTRIES_AT_ONCE. */
  entries: string[];
}

/**
 * Reads entries but for those that are known.
 *
 * @param since `now` of the last read; null: now
 * @param overlapS seconds before that
 */
export async function readEntries(
  client: Pick<ClientBase, 'query'>,
  since: string | null,
  overlapS: number,
  known: readonly string[],
): Promise<ReadEntries> {
  return (await client.query<ReadEntries>({ ...READ, values: [since, overlapS, known] })).rows[0]!;
}

/** IDs of entries that are not there. */
export async function missingEntries(
  manager: EntityManager,
  ids: Iterable<string>,
): Promise<ReadonlySet<string>> {
  const rows = await manager.query<{ id: string }[]>(MISSING, [[...ids]]);
  return new Set(rows.map(({ id }) => id));
}

/** In the order in which they were recorded. */
export function byTime(a: Pick<EntryRow, 'id' | 'at'>, b: Pick<EntryRow, 'id' | 'at'>): number {
  // The milliseconds, the microseconds, then an order that is the same in each process.
  return Date.parse(a.at) - Date.parse(b.at) || compare(a.at, b.at) || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Inserts an entry with its ID and time. @param entry as JSON @returns false if it is there, also by another process */
export async function putBackEntry(manager: EntityManager, entry: string): Promise<boolean> {
  return (await manager.query<object[]>(PUT_BACK, [entry])).length > 0;
}

/** Whether an entry after this one sets the same member. */
export async function isSetLater(
  manager: EntityManager,
  { id, at, subject_id }: Pick<EntryRow, 'id' | 'at' | 'subject_id'>,
  member: string,
): Promise<boolean> {
  const [{ later }] = await manager.query<[{ later: boolean }]>(IS_SET_LATER, [subject_id, at, id, member]);
  return later;
}

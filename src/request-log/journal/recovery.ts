import { createReadStream } from 'node:fs';
import { decodeLines, type JournalRecord, MAX_LINE_LENGTH } from './record-codec.js';
import type { LogRow } from '../columns.js';
import { setInterrupted } from '../charges.js';
import { dropKnownJob, emptyRow, isUsageSoFar, withoutVerdict } from '../log-row.js';

const BATCH = 1_000;
const READ_BYTES = 1024 * 1024;

/** Called with a number of torn or damaged records. */
export type OnCorrupt = (count: number) => void;

/** The records found of one call. */
type KnownCall = Partial<Record<'B' | 'E' | 'U' | 'soFar', JournalRecord>>;

/**
 * Rebuilds the rows of a process that died. A call without a recorded end was interrupted. Memory grows with the number
 * of calls that ran at the same time, not with the files. A row that Postgres already has may come again, which changes
 * nothing there; no batch contains a row twice.
 *
 * @param paths files of one process run, oldest first
 */
export async function* readDeadRows(
  paths: readonly string[],
  onCorrupt?: OnCorrupt,
): AsyncGenerator<LogRow[]> {
  const known = new Map<string, KnownCall>();
  let batch = new Batch();
  for (const path of paths) {
    for await (const record of readRecords(path, onCorrupt)) {
      const row = take(known, record);
      if (row !== null) batch.add(row);
      if (batch.full) {
        yield batch.rows;
        batch = new Batch();
      }
    }
  }
  for (const call of known.values()) {
    // The file of its start record is gone: the row is in Postgres. Or the record was damaged, which was counted.
    if (call.B === undefined) continue;
    batch.add(rowOf(call.B, call.soFar, call.E, call.E === undefined ? withoutVerdict(call.U) : call.U));
    if (batch.full) {
      yield batch.rows;
      batch = new Batch();
    }
  }
  if (batch.rows.length > 0) yield batch.rows;
}

/** The whole rows in a file of this process, in their order. */
export async function* readSpilledRows(path: string, onCorrupt?: OnCorrupt): AsyncGenerator<LogRow[]> {
  let rows: LogRow[] = [];
  for await (const record of readRecords(path, onCorrupt)) {
    if (record.t !== 'R') continue;
    rows.push(rowOf(record));
    if (rows.length < BATCH) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

/** Rows for one statement, which must not contain a row twice (SQLSTATE 21000). */
class Batch {
  private readonly byId = new Map<string, LogRow>();

  get full(): boolean {
    return this.byId.size >= BATCH;
  }

  get rows(): LogRow[] {
    return [...this.byId.values()];
  }

  /** Same rule as the INSERT statement: the first row wins, unless its outcome is `interrupted`. */
  add(row: LogRow): void {
    const before = this.byId.get(row.id);
    if (before === undefined) this.byId.set(row.id, row);
    else if (before.outcome === 'interrupted' && row.outcome !== 'interrupted') this.byId.set(row.id, row);
  }
}

/** Adds a record to its call, in any order. @returns the row once all records are known, else null */
function take(known: Map<string, KnownCall>, record: JournalRecord): LogRow | null {
  const { t, id } = record;
  if (t === 'R') {
    known.delete(id);
    return rowOf(record);
  }
  let call = known.get(id);
  if (call === undefined) known.set(id, (call = {}));
  // The last one counts.
  call[t === 'U' && isUsageSoFar(record) ? 'soFar' : t] = record;
  const { B, soFar, E, U } = call;
  if (B === undefined || E === undefined || U === undefined) return null;
  known.delete(id);
  return rowOf(B, soFar, E, U);
}

/** The row that these records make: a later one overrides an earlier one. */
function rowOf(...records: (JournalRecord | undefined)[]): LogRow {
  const row = emptyRow();
  for (const record of records) {
    if (record === undefined) continue;
    const { t: _, ...values } = record;
    Object.assign(row, values);
  }
  // Its process died before it had read the response.
  if (!records.some((record) => record?.t === 'U' || record?.t === 'R')) setInterrupted(row);
  dropKnownJob(row);
  return row;
}

async function* readRecords(path: string, onCorrupt?: OnCorrupt): AsyncGenerator<JournalRecord> {
  let rest: Buffer = Buffer.alloc(0);
  let skipping = false;
  try {
    const chunks: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: READ_BYTES });
    for await (const chunk of chunks) {
      let bytes = chunk;
      if (skipping) {
        const newline = chunk.indexOf('\n');
        if (newline === -1) continue;
        skipping = false;
        bytes = chunk.subarray(newline + 1);
      }
      const decoded = decodeLines(rest.length > 0 ? Buffer.concat([rest, bytes]) : bytes);
      ({ rest } = decoded);
      if (decoded.corrupt > 0) onCorrupt?.(decoded.corrupt);
      yield* decoded.records;
      // No record is that long, not even two that a damaged newline joined: it is not buffered.
      if (rest.length > 2 * MAX_LINE_LENGTH) {
        onCorrupt?.(1);
        rest = Buffer.alloc(0);
        skipping = true;
      }
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (rest.length > 0) onCorrupt?.(1);
}

import { createReadStream } from 'node:fs';
import { decodeLines, type JournalRecord, LONGEST_LINE } from './record-codec.js';
import {
  type BeginColumns,
  type EndColumns,
  type LogRow,
  UNSEEN_END,
  type UsageColumns,
} from '../log-row.js';
import { NO_USAGE } from '../token-figures.js';

const BATCH = 1_000;
const READ_BYTES = 1024 * 1024;

/** Told of lines that are torn or damaged. */
export type OnCorrupt = (count: number) => void;

interface KnownCall {
  begin?: BeginColumns;
  end?: EndColumns;
  usage?: UsageColumns;
}

/**
 * Rebuilds the rows of a process that is gone: a call whose end nobody saw was interrupted. Memory grows with the calls
 * that were under way at the same time, not with the files. A row that is in Postgres already may come again, which
 * changes nothing there; none comes twice in one batch.
 *
 * @param paths files of one boot, oldest first
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
  for (const { begin, end, usage } of known.values()) {
    // Its beginning lay in a file that is gone: the row is in Postgres. Or it was damaged, and was counted then.
    if (begin === undefined) continue;
    batch.add({ ...begin, ...(end ?? UNSEEN_END), ...NO_USAGE, ...usage });
    if (batch.full) {
      yield batch.rows;
      batch = new Batch();
    }
  }
  if (batch.rows.length > 0) yield batch.rows;
}

/** The rows parked whole in a file of this process, in their order. */
export async function* readParkedRows(path: string, onCorrupt?: OnCorrupt): AsyncGenerator<LogRow[]> {
  let rows: LogRow[] = [];
  for await (const record of readRecords(path, onCorrupt)) {
    if (record.t !== 'R') continue;
    const { t: _, ...row } = record;
    rows.push(row);
    if (rows.length < BATCH) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

/** Rows for one statement: Postgres refuses to touch a row twice in one (SQLSTATE 21000). */
class Batch {
  private readonly byId = new Map<string, LogRow>();

  get full(): boolean {
    return this.byId.size >= BATCH;
  }

  get rows(): LogRow[] {
    return [...this.byId.values()];
  }

  /** As the table itself judges: the first account stands, unless it is a verdict of death. */
  add(row: LogRow): void {
    const before = this.byId.get(row.id);
    if (before === undefined) this.byId.set(row.id, row);
    else if (before.outcome === 'interrupted' && row.outcome !== 'interrupted') this.byId.set(row.id, row);
  }
}

/** Adds a record to its call, in whatever order they come; the row once nothing more can come. */
function take(known: Map<string, KnownCall>, record: JournalRecord): LogRow | null {
  const { id } = record;
  if (record.t === 'R') {
    const { t: _, ...row } = record;
    known.delete(id);
    return row;
  }
  let call = known.get(id);
  if (call === undefined) known.set(id, (call = {}));
  if (record.t === 'B') {
    const { t: _, ...begin } = record;
    call.begin = begin;
  } else if (record.t === 'E') {
    const { t: _, id: __, ...end } = record;
    call.end = end;
  } else {
    const { t: _, id: __, ...usage } = record;
    call.usage = usage;
  }
  const { begin, end, usage } = call;
  if (begin === undefined || end === undefined || usage === undefined) return null;
  known.delete(id);
  return { ...begin, ...end, ...usage };
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
      // No line of ours is that long, not even two that a damaged newline glued together: nothing is gathered for it.
      if (rest.length > 2 * LONGEST_LINE) {
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

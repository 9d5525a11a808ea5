import { createReadStream } from 'node:fs';
import { decodeLines, type JournalRecord } from './journal-line.js';
import { type BeginColumns, type EndColumns, type LogRow, NO_USAGE, UNSEEN_END } from './log-row.js';

const BATCH = 1_000;
const READ_BYTES = 1024 * 1024;

export interface ReadBackOptions {
  /** Whose files they are: of a process that is gone, calls without an end were interrupted; of this one, they go on. */
  dead: boolean;
  /** Told of lines that are torn or damaged. */
  onCorrupt?: (count: number) => void;
}

interface OpenCall {
  begin: BeginColumns;
  end: EndColumns | null;
}

/**
 * Rebuilds rows from the files of one boot, read in their order. Memory grows with the calls that were under way at the
 * same time, not with the files. A row that comes twice is harmless: writing it again changes nothing.
 *
 * @param paths files of one boot, oldest first; one that is gone by now is passed over, its calls being in Postgres
 */
export async function* readRows(
  paths: readonly string[],
  options: ReadBackOptions,
): AsyncGenerator<LogRow[]> {
  const open = new Map<string, OpenCall>();
  let batch: LogRow[] = [];
  for (const path of paths) {
    for await (const record of readRecords(path, options.onCorrupt)) {
      const row = take(open, record);
      if (row !== null) batch.push(row);
      if (batch.length >= BATCH) {
        yield batch;
        batch = [];
      }
    }
  }
  if (options.dead) {
    for (const { begin, end } of open.values()) {
      const known = end ?? UNSEEN_END;
      batch.push({ ...begin, ...known, ...NO_USAGE });
      if (batch.length >= BATCH) {
        yield batch;
        batch = [];
      }
    }
  }
  if (batch.length > 0) yield batch;
}

/** Adds a record to its call; the row once the last record is there. */
function take(open: Map<string, OpenCall>, record: JournalRecord): LogRow | null {
  if (record.t === 'B') {
    const { t: _, ...begin } = record;
    open.set(record.id, { begin, end: null });
    return null;
  }
  const call = open.get(record.id);
  // Its beginning lay in a file that is gone: the row is in Postgres.
  if (call === undefined) return null;
  if (record.t === 'E') {
    const { t: _, id: __, ...end } = record;
    call.end = end;
    return null;
  }
  open.delete(record.id);
  const { t: _, id: __, ...usage } = record;
  return { ...call.begin, ...(call.end ?? UNSEEN_END), ...usage };
}

async function* readRecords(
  path: string,
  onCorrupt?: (count: number) => void,
): AsyncGenerator<JournalRecord> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(path, {
      highWaterMark: READ_BYTES,
    }) as AsyncIterable<Buffer>) {
      const decoded = decodeLines(rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk);
      rest = decoded.rest;
      if (decoded.corrupt > 0) onCorrupt?.(decoded.corrupt);
      yield* decoded.records;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (rest.length > 0) onCorrupt?.(1);
}

import type { JournalFile } from '../journal/journal-file.js';
import type { Priceable } from './row-pricer.js';

/** A row that waits for the log writer. */
export interface WaitingRow extends Priceable {
  files: readonly JournalFile[];
  /** Roughly its bytes in memory; not counted for a row that was read back. */
  weight?: number;
  /** False if the journal lacks part of it. */
  journalled: boolean;
  written?: (inPostgres: boolean) => void;
}

/** Counts since the start: `enqueued = persisted + waiting + spilled + rejected` at all times. */
export interface WriterCounts {
  enqueued: number;
  persisted: number;
  /** Whole rows that wait in the journal, not in memory. */
  spilled: number;
  rejected: number;
}

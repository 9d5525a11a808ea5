import type { CallRecord } from './call-record.js';
import type { JournalFile } from './journal-file.js';
import { encodeEnd, encodeUsage } from './journal-line.js';
import { type BeginColumns, endColumns, type LogRow, rowOf, usageColumns } from './log-row.js';
import type { Outcome } from './request-log.entity.js';
import { NO_USAGE, type Usage } from './token-figures.js';

/** What the journal was told of a begun call, until the writer has its row. */
export class Account {
  /** What its answer says; null while it is not read. */
  usage: Usage | null = null;
  /** The outcome that was journalled with its end; null while none was. */
  private outcomeKept: Outcome | null = null;
  private usageKept = false;

  constructor(
    readonly call: CallRecord,
    private readonly begin: BeginColumns,
  ) {}

  get endKept(): boolean {
    return this.outcomeKept !== null;
  }

  /** The record of its end, with what its answer says if that is known. */
  encodeEnd(): string {
    const { call, usage } = this;
    return encodeEnd(call.origin.id, endColumns(call), usage === null ? null : usageColumns(call, usage));
  }

  /** The end, as it was encoded, is in this file. */
  keepEnd(file: JournalFile): void {
    this.call.files.push(file);
    this.outcomeKept = this.call.outcome;
    this.usageKept = this.usage !== null;
  }

  row(): LogRow {
    const { call } = this;
    return rowOf(this.begin, endColumns(call), usageColumns(call, this.usage ?? NO_USAGE));
  }

  /** What the journal lacks of the row of a call that is over; null: nothing. */
  encodeRest(row: LogRow): string | null {
    const isAnother = this.usageKept && this.outcomeKept !== row.outcome;
    // An end that could not be journalled when it happened, or that was said ahead of a last write that failed.
    if (!this.endKept || isAnother) return encodeEnd(row.id, row, row);
    return this.usageKept ? null : encodeUsage(row.id, row);
  }
}

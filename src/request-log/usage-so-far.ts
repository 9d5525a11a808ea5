import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import type { CallRecord } from './call-record.js';
import type { LogRow } from './columns.js';
import type { Journal } from './journal/journal.js';
import { encodeLines, encodeRecord } from './journal/record-codec.js';
import { setUsage } from './log-row.js';

/**
 * Journals the usage so far of a call that goes on, in place of the usage that was journalled before.
 *
 * @param row of the call; it stays as it is
 * @throws the system's error if it cannot be written
 */
export function appendUsageSoFar(
  journal: Journal,
  call: CallRecord,
  row: LogRow,
  usage: ResponseUsage,
): void {
  const soFar = { ...row };
  setUsage(soFar, call, usage);
  const file = journal.appendLines(encodeLines([encodeRecord('U', soFar, true)]), 1, true);
  // The file of the record before is not needed for it any more: one call must not keep a file for each 10 s.
  if (call.usageFile !== null) {
    call.files.splice(call.files.indexOf(call.usageFile), 1);
    journal.release([call.usageFile]);
  }
  call.files.push(file);
  call.usageFile = file;
}

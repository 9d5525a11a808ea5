import type { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import { encodeLines, lineLength } from './record-codec.js';

/** A record on its way to the journal. */
export interface Entry {
  readonly json: string;
  /** It may not use the room that is kept for the ends of calls. */
  readonly isBeginning: boolean;
  /** This file holds its line, and is to be let go of once for it. */
  kept(file: JournalFile): void;
  refused(fault: unknown): void;
}

/**
 * Journals records in one write and tells each, in their order, what became of it. Of a write that fails in the middle
 * the whole lines stand, for a next start would read them; the others are tried one by one.
 */
export function journalTogether(journal: Journal, entries: readonly Entry[]): void {
  const some = journal.appendSome(encodeLines(entries.map(({ json }) => json)));
  let count = 0;
  if (some !== null) {
    let end = 0;
    while (count < entries.length && (end += lineLength(entries[count]!.json)) <= some.bytes) count++;
    // All of them before the first goes on: the file must not go with it.
    some.file.held += count;
  }
  entries.forEach((entry, i) => {
    if (i < count) entry.kept(some!.file);
    else journalAlone(journal, entry);
  });
}

function journalAlone(journal: Journal, entry: Entry): void {
  let file: JournalFile;
  try {
    if (entry.isBeginning && !journal.accepting) throw new Error('the journal takes no beginnings');
    file = journal.appendLines(encodeLines([entry.json]), 1, !entry.isBeginning);
  } catch (fault) {
    entry.refused(fault);
    return;
  }
  entry.kept(file);
}

import { Command } from 'commander';
import type { RunCounts } from '../journal.js';
import { action } from '../session.js';
import { count } from '../table.js';

const DIR_ARGUMENT = ['<dir>', 'DATA_DIR of the gateway'] as const;

/** `postern journal status|drain`: for the volume of a replica that is gone. */
export function journalCommand(): Command {
  const journal = new Command('journal')
    .description('inspect the journal of a gateway that is gone and write its rows to Postgres')
    .addHelpText(
      'after',
      `
A gateway drains its own journal at each start. Use this for the volume of a gateway that does not come back. Draining
twice is safe: a row that Postgres already has is not written again.

Finished files are kept for a while after Postgres has acknowledged their rows (JOURNAL_KEEP_MS). They are left alone
unless you say --kept: then rows in them that Postgres does not have are written again. Do not say it after you have
restored a backup on purpose.

Examples:
  postern journal status /mnt/volume-of-replica-3
  DATABASE_URL=postgres://… postern journal drain /mnt/volume-of-replica-3`,
    );

  journal
    .command('status')
    .description('count the rows left in a DATA_DIR')
    .argument(...DIR_ARGUMENT)
    .option('--json', 'print the counts as JSON')
    .action(
      action(async (session, _, dir) => {
        session.mustBeLocal('the DATA_DIR');
        const { countJournal } = await import('../journal.js');
        const runs = await countJournal(dir);
        session.out.result(runs, () => lines(runs, 'rows in'));
      }),
    );

  journal
    .command('drain')
    .description('write the rows to Postgres, then remove them from the DATA_DIR')
    .argument(...DIR_ARGUMENT)
    .option('--kept', 'also put back rows of kept files that Postgres has lost, and remove the files')
    .option('--json', 'print the counts as JSON')
    .action(
      action(async (session, options: { kept?: boolean }, dir) => {
        session.mustBeLocal('the DATA_DIR and the database');
        const { drainJournal } = await import('../journal.js');
        const runs = await drainJournal(dir, options);
        session.out.result(runs, () => lines(runs, 'rows written from'));
      }),
    );

  return journal;
}

function lines(runs: readonly RunCounts[], what: string): string {
  const journals = runs.filter(({ bytes }) => bytes > 0);
  const kept = runs.filter(({ kept_files: files }) => files > 0);
  return [
    ...(journals.length === 0 ? ['The journal is empty: every row is in Postgres.'] : []),
    ...journals.map(
      ({ folder, rows, interrupted, damaged_lines: damaged, bytes }) =>
        `${count(rows)} ${what} ${folder} (${count(interrupted)} interrupted, ${count(damaged)} damaged lines, ` +
        `${count(bytes)} bytes)`,
    ),
    ...kept.map(
      ({ folder, kept_files: files, kept_bytes: bytes, put_back: rows }) =>
        `${count(files)} finished files kept in ${folder} (${count(bytes)} bytes, ${count(rows)} rows put back)`,
    ),
  ].join('\n');
}

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
    .option('--json', 'print the counts as JSON')
    .action(
      action(async (session, _, dir) => {
        session.mustBeLocal('the DATA_DIR and the database');
        const { drainJournal } = await import('../journal.js');
        const runs = await drainJournal(dir);
        session.out.result(runs, () => lines(runs, 'rows written from'));
      }),
    );

  return journal;
}

function lines(runs: readonly RunCounts[], what: string): string {
  if (runs.length === 0) return 'The journal is empty: every row is in Postgres.';
  return runs
    .map(
      ({ folder, rows, interrupted, damaged_lines: damaged, bytes }) =>
        `${count(rows)} ${what} ${folder} (${count(interrupted)} interrupted, ${count(damaged)} damaged lines, ` +
        `${count(bytes)} bytes)`,
    )
    .join('\n');
}

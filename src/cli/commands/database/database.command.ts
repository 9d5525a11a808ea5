import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import { cliCommand } from '../../../platform/cli-command.js';
import type { RegressionView } from '../../../regressions/decisions/regressions.schema.js';
import { path } from '../../api.js';
import { action } from '../../session.js';
import type { Column } from '../../table.js';
import { exactTime, minuteTime } from '../../times.js';

interface ListOptions {
  limit?: string;
  cursor?: string;
}

const ARGUMENT = ['<id>', 'ID of the loss'] as const;
const BASE = 'database/regressions';

/** `postern database …` */
export function databaseCommand(): Command {
  const database = new Command('database').description('what Postgres has lost of what it had acknowledged');
  const regressions = database
    .command('regressions')
    .description('losses after a failover to an asynchronous standby, or a restored backup');

  regressions
    .command('list')
    .description('list losses, the newest first')
    .option('--limit <n>', 'rows per page, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'next_cursor of the previous page')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern database regressions list')
    .action(
      action(async ({ api, out }, { limit, cursor }: ListOptions) => {
        const page = await api.get<Page<RegressionView>>(BASE, { limit, cursor });
        out.page(page, { noun: 'losses', columns: COLUMNS });
      }),
    );

  regressions
    .command('show')
    .description('show a loss, with the changes that nobody applies again')
    .argument(...ARGUMENT)
    .option('--json', 'print the loss as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  postern database regressions show 01890a5d-ac96-774b-bcce-b302099a8057',
    )
    .action(
      action(async ({ api, out }, _: object, id: string) => {
        const loss = await api.get<RegressionView>(`${BASE}/${path(id)}`);
        out.result(loss, () => out.fields(fieldsOf(loss)));
      }),
    );

  regressions
    .command('put-back')
    .description('put back what processes have of a loss that waits for a decision')
    .argument(...ARGUMENT)
    .option('--json', 'print the loss as JSON')
    .addHelpText(
      'after',
      `
Every process begins within 2 seconds.

Example:
  postern database regressions put-back 01890a5d-ac96-774b-bcce-b302099a8057`,
    )
    .action(
      action(async ({ api, out }, _: object, id: string) => {
        const loss = await api.post<RegressionView>(`${BASE}/${path(id, 'put-back')}`, {});
        out.result(loss, () => `It is put back now. See "${cliCommand(`database regressions show ${id}`)}".`);
      }),
    );

  regressions
    .command('dismiss')
    .description('put back nothing of a loss that waits for a decision')
    .argument(...ARGUMENT)
    .option('--json', 'print the loss as JSON')
    .addHelpText(
      'after',
      `
Keys, tokens, sessions and people whose end was lost are in force again: end them again if needed.

Example:
  postern database regressions dismiss 01890a5d-ac96-774b-bcce-b302099a8057`,
    )
    .action(
      action(async ({ api, out }, _: object, id: string) => {
        const loss = await api.post<RegressionView>(`${BASE}/${path(id, 'dismiss')}`, {});
        out.result(loss, () => 'Nothing is put back.');
      }),
    );

  return database;
}

const COLUMNS: readonly Column<RegressionView>[] = [
  { head: 'NOTICED', cell: ({ noticed_at: at }) => minuteTime(at) },
  { head: 'STATE', cell: ({ state }) => state.replaceAll('_', ' ') },
  { head: 'LOST FROM', cell: ({ lost_from: at }) => (at === null ? null : exactTime(at)) },
  { head: 'SECONDS', cell: ({ gap_seconds: gap }) => gap, align: 'right' },
  { head: 'ROWS BACK', cell: ({ rows_put_back: rows }) => rows, align: 'right' },
  { head: 'ENDS BACK', cell: ({ ends_put_back: ends }) => ends, align: 'right' },
  { head: 'TO REPEAT', cell: ({ lost_entries: entries }) => entries.length, align: 'right' },
  { head: 'ID', cell: ({ id }) => id },
];

function fieldsOf({
  runs,
  lost_entries: entries,
  ...loss
}: RegressionView): [string, string | number | null][] {
  return [
    ...Object.entries(loss),
    ...runs.map(({ run, surviving, acknowledged }): [string, string] => [
      'run',
      `${run}: ${surviving} of ${acknowledged}`,
    ]),
    ...entries.map(
      ({ at, actor, action: done, subject_type: type, subject_name: name }): [string, string] => [
        'to repeat',
        `${exactTime(at)} ${type} ${name} ${done} by ${actor}`,
      ],
    ),
  ];
}

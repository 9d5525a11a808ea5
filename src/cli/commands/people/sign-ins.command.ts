import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import type { SignInView } from '../../../identity/people/people.schema.js';
import { path } from '../../api.js';
import { addPageOptions, listPages, type PageOptions } from '../../list-options.js';
import { action } from '../../session.js';
import type { Column } from '../../table.js';
import { minuteTime } from '../../times.js';

interface SignInsOptions extends PageOptions {
  state?: string;
}

/** `postern sign-ins …` */
export function signInsCommand(): Command {
  const signIns = new Command('sign-ins').description(
    'sign-ins of people from Claude Code and other clients',
  );

  addPageOptions(signIns.command('list').description('list sign-ins, newest first'))
    .option('--state <active|ended>', 'filter by whether they go on')
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern sign-ins list --state active')
    .action(
      action<SignInsOptions>(async ({ api, out }, { state, ...paging }) => {
        const page = await listPages<Page<SignInView>>(api, 'sign-ins', { state }, paging);
        out.page(page, { noun: 'sign-ins', columns: COLUMNS });
      }),
    );

  signIns
    .command('end')
    .description('end a sign-in: its tokens stop working within a second')
    .argument('<sign-in>', 'ID of the sign-in')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `
The person can sign in again: to keep somebody out, use postern people end.

Example:
  postern sign-ins end 01980c2e-7f3a-7c61-9d55-3a4de1f0a9b2`,
    )
    .action(
      action(async (session, _, id) => {
        await session.confirm(`End sign-in ${id}?`);
        await session.api.delete(path('sign-ins', id));
        session.out.result({ ended: id }, () => `Ended sign-in ${id}.`);
      }),
    );

  return signIns;
}

const COLUMNS: readonly Column<SignInView>[] = [
  { head: 'PERSON', cell: ({ person }) => person, min: 12 },
  { head: 'KEY', cell: ({ key }) => key },
  { head: 'CLIENT', cell: ({ surface }) => surface },
  { head: 'ADDRESS', cell: ({ client_ip: address }) => address, drop: 3 },
  { head: 'SIGNED IN', cell: ({ created_at: at }) => minuteTime(at), drop: 4 },
  { head: 'RENEWED', cell: ({ last_renewed_at: at }) => minuteTime(at) },
  {
    head: 'ENDS',
    cell: ({ ended_at, end_reason, expires_at }) =>
      ended_at === null ? minuteTime(expires_at) : `${minuteTime(ended_at)} (${end_reason})`,
  },
  { head: 'SUSPICIOUS', cell: ({ spent_refused_at: at }) => minuteTime(at), drop: 2 },
  { head: 'ID', cell: ({ id }) => id },
];

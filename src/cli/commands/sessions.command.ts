import { Command } from 'commander';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../list-options.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime } from '../times.js';
import type { Page } from '../../database/page.js';
import type { Ended, SessionView } from '../../admin/session-list/sessions.schema.js';

interface ActorOption {
  actor?: string;
}

/** `postern sessions …` */
export function sessionsCommand(): Command {
  const sessions = new Command('sessions').description('who is signed in to the console');

  addPageOptions(
    sessions
      .command('list')
      .description('list sessions that have not ended, newest first')
      .option('--actor <actor>', 'filter by user, for example sso:jane@example.com or token:jane'),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern sessions list --actor sso:jane@example.com')
    .action(
      action<PageOptions & ActorOption>(async ({ api, out }, { actor, ...paging }) => {
        const page = await listPages<Page<SessionView>>(api, 'sessions', { actor }, paging);
        out.page(page, { noun: 'sessions', columns: COLUMNS });
      }),
    );

  sessions
    .command('end')
    .description('end a session, or all sessions of a user')
    .argument('[session]', 'ID of the session')
    .option('--actor <actor>', 'end all sessions of this user')
    .option('--yes', 'do not ask')
    .option('--json', 'print how many sessions ended as JSON')
    .addHelpText('after', '\nExample:\n  postern sessions end --actor sso:jane@example.com')
    .action(action<ActorOption>(end));

  return sessions;
}

const COLUMNS: readonly Column<SessionView>[] = [
  { head: 'ACTOR', cell: ({ actor }) => actor, min: 12 },
  { head: 'ROLE', cell: ({ role }) => role },
  { head: 'TEAMS', cell: ({ teams }) => teams?.map(({ name }) => name).join(',') ?? '', drop: 2 },
  { head: 'ADDRESS', cell: ({ client_ip: ip }) => ip, drop: 3 },
  { head: 'SIGNED IN', cell: ({ created_at: at }) => minuteTime(at) },
  { head: 'LAST SEEN', cell: ({ last_seen_at: at }) => minuteTime(at), drop: 1 },
  { head: 'ENDS', cell: ({ expires_at: at }) => minuteTime(at), drop: 4 },
  { head: 'ID', cell: ({ id }) => id },
];

async function end(session: Session, { actor }: ActorOption, id?: string): Promise<void> {
  const { api, out } = session;
  if ((id === undefined) === (actor === undefined))
    throw new CliError('give the ID of a session, or --actor with a user');
  if (id !== undefined) {
    await session.confirm(`End session ${id}?`);
    await api.delete(path('sessions', id));
    out.result({ ended: 1 }, () => `Ended session ${id}.`);
  } else {
    await session.confirm(`End all sessions of ${actor}?`);
    const result = await api.delete<Ended>('sessions', { actor });
    out.result(
      result,
      () => `Ended ${result.ended} ${result.ended === 1 ? 'session' : 'sessions'} of ${actor}.`,
    );
  }
}

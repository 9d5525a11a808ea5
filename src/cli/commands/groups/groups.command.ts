import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import type { GroupView } from '../../../groups/groups.schema.js';
import type { TeamView } from '../../../teams/teams.schema.js';
import { path } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../../list-options.js';
import { limitLines } from '../options/limit-options.js';
import { action, type Session } from '../../session.js';
import type { Column } from '../../table.js';
import { exactTime, minuteTime } from '../../times.js';

interface GroupOptions {
  name?: string;
  note?: string;
  teams?: string;
  addTeam?: string[];
  removeTeam?: string[];
}

const GROUP_ARGUMENT = ['<group>', 'name or ID of the group'] as const;

/** `postern groups …` */
export function groupsCommand(): Command {
  const groups = new Command('groups').description('groups of teams');

  groups
    .command('create')
    .description('create a group')
    .argument('<name>', 'group name')
    .option('--teams <teams>', 'its teams, by name or ID, separated by commas')
    .option('--note <text>', 'free text')
    .option('--json', 'print the group as JSON')
    .addHelpText(
      'after',
      '\nA team that is in another group leaves it.\n\nExample:\n  postern groups create dev --teams search,ranking',
    )
    .action(
      action<GroupOptions>(async ({ api, out }, options, name) => {
        const group = await api.post<GroupView>('groups', { name, ...membersOf(options) });
        out.result(group, () => `Created group ${group.name} (${group.id}) with ${counted(group)}.`);
      }),
    );

  addPageOptions(
    groups
      .command('list')
      .description('list groups, newest first')
      .option('--name <text>', 'filter by a part of the name'),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern groups list --all')
    .action(
      action<PageOptions & GroupOptions>(async ({ api, out }, { name, ...options }) => {
        const page = await listPages<Page<GroupView>>(api, 'groups', { search: name }, options);
        out.page(page, { noun: 'groups', columns: COLUMNS });
      }),
    );

  groups
    .command('show')
    .description('show a group')
    .argument(...GROUP_ARGUMENT)
    .option('--json', 'print the group as JSON')
    .addHelpText('after', '\nExample:\n  postern groups show dev')
    .action(
      action(async ({ api, out }, _, text) => {
        const group = await api.get<GroupView>(path('groups', text));
        out.result(group, () =>
          out.fields([
            ['id', group.id],
            ['name', group.name],
            ['teams', group.teams.join(', ') || 'none'],
            ['created', exactTime(group.created_at)],
            ...limitLines(group),
            ...(group.note === null ? [] : [['note', group.note] as const]),
          ]),
        );
      }),
    );

  groups
    .command('update')
    .description('change the name or note of a group, or its teams')
    .argument(...GROUP_ARGUMENT)
    .option('--name <name>', 'new name')
    .option('--teams <teams>', 'all its teams, by name or ID, separated by commas, or none')
    .option('--add-team <teams...>', 'teams that join it, by name or ID')
    .option('--remove-team <teams...>', 'teams that leave it, by name or ID')
    .option('--note <text>', 'free text, or none')
    .option('--json', 'print the group as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  postern groups update dev --add-team ads\n  postern groups update dev --teams search,ranking',
    )
    .action(action<GroupOptions>(update));

  groups
    .command('delete')
    .description('delete a group that has no teams')
    .argument(...GROUP_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern groups delete dev')
    .action(
      action(async (session, _, text) => {
        await session.confirm(`Delete group ${text}?`);
        await session.api.delete(path('groups', text));
        session.out.result({ removed: text }, () => `Deleted group ${text}.`);
      }),
    );

  return groups;
}

async function update({ api, out }: Session, options: GroupOptions, text?: string): Promise<void> {
  const { name, addTeam: added = [], removeTeam: removed = [] } = options;
  if (options.teams !== undefined && added.length + removed.length > 0)
    throw new CliError('give either --teams, or --add-team and --remove-team');
  const change = { ...(name !== undefined && { name }), ...membersOf(options) };
  if (Object.keys(change).length + added.length + removed.length === 0)
    throw new CliError('nothing to change: give --name, --teams, --add-team, --remove-team or --note');
  let group = await api.get<GroupView>(path('groups', text!));
  if (Object.keys(change).length > 0) group = await api.patch<GroupView>(path('groups', group.id), change);
  // Each team by itself: who changes another team at the same time loses nothing.
  for (const team of added) await api.patch<TeamView>(path('teams', team), { group: group.id });
  for (const team of removed) {
    const present = await api.get<TeamView>(path('teams', team));
    if (present.group !== group.name)
      throw new CliError(`--remove-team: team ${present.name} is not in group ${group.name}`);
    await api.patch<TeamView>(path('teams', present.id), { group: null });
  }
  const changed = await api.get<GroupView>(path('groups', group.id));
  out.result(changed, () => `Updated group ${changed.name} (${changed.id}): ${counted(changed)}.`);
}

/** The options that were given, as fields of the admin API. */
function membersOf({ note, teams }: GroupOptions): { note?: string | null; teams?: string[] } {
  return {
    ...(note !== undefined && { note: note === 'none' ? null : note }),
    ...(teams !== undefined && {
      teams: teams === 'none' ? [] : teams.split(',').map((team) => team.trim()),
    }),
  };
}

function counted({ teams }: GroupView): string {
  return teams.length === 0 ? 'no teams' : `the teams ${teams.join(', ')}`;
}

const COLUMNS: readonly Column<GroupView>[] = [
  { head: 'NAME', cell: ({ name }) => name, min: 12 },
  { head: 'TEAMS', cell: ({ teams }) => teams.join(', ') || null, min: 16 },
  { head: 'NOTE', cell: ({ note }) => note, drop: 2 },
  { head: 'CREATED', cell: ({ created_at: at }) => minuteTime(at) },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

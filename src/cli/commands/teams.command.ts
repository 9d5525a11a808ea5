import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import type { TeamChange, TeamView } from '../../teams/teams.schema.js';
import { cliCommand, shellQuoted } from '../../platform/cli-command.js';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../list-options.js';
import {
  addAnnotationFilters,
  addAnnotationOptions,
  ANNOTATION_OPTION_NAMES,
  annotationColumns,
  annotationLines,
  type AnnotationOptions,
  annotationQuery,
  annotationsOf,
} from './options/annotation-options.js';
import { noteBefore } from './options/budget-note.js';
import {
  addLimitOptions,
  hasLimitOptions,
  LIMIT_OPTION_NAMES,
  limitLines,
  limitMembersOf,
  type LimitOptions,
} from './options/limit-options.js';
import {
  addModelRuleOptions,
  modelRuleLines,
  type ModelRuleOptions,
  modelRulesOf,
} from './options/model-rules.js';
import {
  addProviderRuleOptions,
  providerRuleLines,
  type ProviderRuleOptions,
  providerRulesOf,
} from './options/provider-rules.js';
import {
  addSelfServiceOption,
  selfServiceLines,
  selfServiceOf,
  type SelfServiceOption,
} from './options/self-service-option.js';
import { addSignInOption, signInLines, signInOf, type SignInOption } from './options/sign-in-option.js';
import { type Output, statusStyle } from '../output.js';
import { action } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, exactTime } from '../times.js';

const TEAM_ARGUMENT = ['<team>', 'name or ID of the team'] as const;

type GroupOption = { group?: string };
type TeamOptions = ModelRuleOptions &
  ProviderRuleOptions &
  LimitOptions &
  SelfServiceOption &
  SignInOption &
  AnnotationOptions &
  GroupOption;
type ListOptions = PageOptions & AnnotationOptions & GroupOption & { name?: string };

/** `postern teams …` */
export function teamsCommand(): Command {
  const teams = new Command('teams').description('teams that gateway keys belong to');

  addTeamOptions(teams.command('create').description('create a team').argument('<name>', 'team name'))
    .option('--json', 'print the team as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  postern teams create search\n  postern teams create search --budget 500/month@80,100',
    )
    .action(
      action<TeamOptions>(async ({ api, out }, options, name) => {
        const members = {
          ...groupOf(options),
          ...modelRulesOf(options),
          ...providerRulesOf(options),
          ...limitMembersOf(options, null),
          ...selfServiceOf(options),
          ...signInOf(options),
          ...annotationsOf(options),
        };
        const team = await api.post<TeamView>('teams', { name, ...members });
        out.result(team, () => `Created team ${team.name} (${team.id}).`);
        out.note(`Next: ${cliCommand(`keys create --team ${shellQuoted(team.name)} --name ci`)}`);
      }),
    );

  addPageOptions(
    addAnnotationFilters(
      teams
        .command('list')
        .description('list teams, newest first')
        .option('--name <text>', 'filter by a part of the name')
        .option('--group <name or id>', 'filter by group'),
    ),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  postern teams list --all\n  postern teams list --name sea\n  postern teams list --group dev\n  postern teams list --cost-center CC-4711',
    )
    .action(
      action<ListOptions>(async ({ api, out }, { name, group, ...options }) => {
        const query = { search: name, group, ...annotationQuery(options) };
        const page = await listPages<Page<TeamView>>(api, 'teams', query, options);
        out.page(page, { noun: 'teams', columns: columnsOf(page.data) });
      }),
    );

  teams
    .command('show')
    .description('show a team')
    .argument(...TEAM_ARGUMENT)
    .option('--json', 'print the team as JSON')
    .addHelpText('after', '\nExample:\n  postern teams show search')
    .action(
      action(async ({ api, out }, _, text) => {
        const team = await api.get<TeamView>(path('teams', text));
        out.result(team, () =>
          out.fields([
            ['id', team.id],
            ['name', team.name],
            ['status', statusOf(team), statusStyle(statusOf(team))],
            ...(team.group === null ? [] : [['group', team.group] as const]),
            ['created', exactTime(team.created_at)],
            ...modelRuleLines(team),
            ...providerRuleLines(team),
            ...limitLines(team),
            ...selfServiceLines(team.self_service),
            ...signInLines(team.sign_in, team.claude_code),
            ...annotationLines(team),
          ]),
        );
      }),
    );

  addTeamOptions(
    teams
      .command('update')
      .description(
        'change the name, group, models, providers, limits, budgets, owner, contact or cost center of a team, or what its members may do',
      )
      .argument(...TEAM_ARGUMENT)
      .option('--name <name>', 'new name'),
  )
    .option('--json', 'print the team as JSON')
    .addHelpText('after', '\nExample:\n  postern teams update search --name discovery')
    .action(
      action<TeamOptions & { name?: string }>(async ({ api, out }, options, text) => {
        const { name } = options;
        const present = hasLimitOptions(options) ? await api.get<TeamView>(path('teams', text)) : null;
        const change = {
          ...(name !== undefined && { name }),
          ...groupOf(options),
          ...modelRulesOf(options),
          ...providerRulesOf(options),
          ...limitMembersOf(options, present),
          ...selfServiceOf(options),
          ...signInOf(options),
          ...annotationsOf(options),
        };
        if (Object.keys(change).length === 0)
          throw new CliError(
            `nothing to change: give --name, --group, --models, --stream-usage, --providers, --default-provider, --self-service, --sign-in, --claude-code, ${ANNOTATION_OPTION_NAMES}, ${LIMIT_OPTION_NAMES}`,
          );
        const team = await api.patch<TeamView>(path('teams', text), change);
        out.result(team, () => `Updated team ${team.name} (${team.id}).`);
        if (present !== null)
          await noteBefore({ api, out }, { team: team.id }, present.budgets, team.budgets);
      }),
    );

  for (const [name, disabled] of [
    ['disable', true],
    ['enable', false],
  ] as const) {
    teams
      .command(name)
      .description(
        disabled ? 'reject calls with any key of a team' : 'accept calls with the keys of a disabled team',
      )
      .argument(...TEAM_ARGUMENT)
      .option('--json', 'print the team as JSON')
      .addHelpText('after', `\nExample:\n  postern teams ${name} search`)
      .action(
        action(async ({ api, out }, _, text) => {
          printState(out, await api.patch<TeamView>(path('teams', text), { disabled }));
        }),
      );
  }

  return teams;
}

function groupOf({ group }: GroupOption): Pick<TeamChange, 'group'> {
  return group === undefined ? {} : { group: group === 'none' ? null : group };
}

function addTeamOptions(command: Command): Command {
  command.option('--group <group>', 'group of teams that it is in, by name or ID, or none');
  const withRules = addProviderRuleOptions(addModelRuleOptions(addAnnotationOptions(command)));
  return addSignInOption(addSelfServiceOption(addLimitOptions(withRules)));
}

const GROUP: Column<TeamView> = { head: 'GROUP', cell: ({ group }) => group, min: 8 };

const columnsOf = (rows: readonly TeamView[]): readonly Column<TeamView>[] => [
  { head: 'NAME', cell: ({ name }) => name, min: 12 },
  { head: 'STATUS', cell: statusOf, style: (team) => statusStyle(statusOf(team)) },
  ...(rows.some(({ group }) => group !== null) ? [GROUP] : []),
  ...annotationColumns(rows),
  { head: 'CREATED', cell: ({ created_at: at }) => minuteTime(at) },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

function statusOf({ disabled }: TeamView): string {
  return disabled ? 'disabled' : 'active';
}

function printState(out: Output, team: TeamView): void {
  out.result(team, () => `Team ${team.name} is ${statusOf(team)}.`);
}

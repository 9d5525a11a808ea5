import { isDeepStrictEqual } from 'node:util';
import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import type { LimitPreviewResult, LimitView } from '../../limits/limits.schema.js';
import { cliCommand, shellQuoted } from '../../platform/cli-command.js';
import { type Api, path } from '../api.js';
import type { Budget, ShownLimits } from '../../limit-rules/limit-rules.schema.js';
import { CliError } from '../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../list-options.js';
import { findKeyId } from '../lookup.js';
import { findLimitOwner, type LimitOwner } from './groups/limit-owner.js';
import type { Output, Style } from '../output.js';
import { action, type Session } from '../session.js';
import { type Column, count } from '../table.js';
import { minuteTime } from '../times.js';
import { noteBefore } from './options/budget-note.js';
import {
  addLimitFilterOptions,
  addLimitOptions,
  hasLimitOptions,
  LIMIT_OPTION_NAMES,
  type LimitFilterOptions,
  limitMembersOf,
  type LimitOptions,
} from './options/limit-options.js';

const OWNER_ARGUMENT = [
  '<owner...>',
  'team by name or ID; key by team/name, prefix or ID; "group" and its name or ID; or "installation", for all calls',
] as const;

interface ListOptions extends PageOptions {
  team?: string;
  key?: string;
  scope?: string;
  provider?: string;
  model?: string;
  state?: string;
}

/** `postern limits …` */
export function limitsCommand(): Command {
  const limits = new Command('limits').description('limits and budgets, and what was used of them');

  addPageOptions(
    limits
      .command('list')
      .description('list limits and budgets with their use, newest first')
      .option('--team <name or id>', 'filter by team, its keys included')
      .option('--key <key>', 'filter by key: team/name, prefix or ID')
      .option('--scope <scope>', 'filter by owner: installation, group, team or key')
      .option('--provider <name>', 'only those that name this provider')
      .option('--model <name>', 'only those of some models that count this one')
      .option('--state <state>', 'filter by state: ok, warned, exhausted or blocking, which rejects calls'),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExamples:\n  postern limits list\n  postern limits list --state blocking --all')
    .action(action(list));

  limits
    .command('show')
    .description(
      'show the limits and budgets that apply to a key, a team, a group or all calls; for a key, those of its team, the group of that and all calls too',
    )
    .argument(...OWNER_ARGUMENT)
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  postern limits show search\n  postern limits show search/ci\n  postern limits show group dev\n  postern limits show installation',
    )
    .action(action(show));

  addLimitFilterOptions(
    addLimitOptions(
      limits
        .command('set')
        .description('set limits and budgets of a team, a key, a group or all calls; the others stay')
        .argument(...OWNER_ARGUMENT),
    ),
  )
    .option(
      '--dry-run',
      'change nothing: say how many calls of the last 7 days the budgets would have rejected',
    )
    .option('--json', 'print the owner as JSON')
    .addHelpText(
      'after',
      `
Examples:
  postern limits set search --budget 500/month@80,100
  postern limits set search/ci --rpm 600 --tpm none
  postern limits set search/ci --budget none
  postern limits set search --model 'claude-opus-*' --budget 300/week
  postern limits set search/agent --each-session --budget 5/session
  postern limits set group dev --budget 100/day@80,100
  postern limits set group dev --budget 100/day --dry-run
  postern limits set installation --provider openai --budget 5000/month`,
    )
    .action(action(set));

  limits
    .command('reset')
    .description('give a budget its whole amount again for the rest of its period')
    .argument('<id>', 'ID of the budget, from limits list')
    .requiredOption('--reason <text>', 'why; recorded in the audit log')
    .option('--subject <subject>', 'only this end user, as limits list --json shows it')
    .option('--yes', 'do not ask')
    .option('--json', 'print the budget as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  postern limits reset 01890a5d-ac96-774b-bcce-b302099a8057 --reason "pilot extended"',
    )
    .action(action(reset));

  return limits;
}

async function list(
  { api, out }: Session,
  { team, key, scope, provider, model, state, ...paging }: ListOptions,
) {
  const filter = {
    team,
    scope,
    provider,
    model,
    state,
    ...(key !== undefined && { key: await findKeyId(api, key) }),
  };
  printLimits(out, await listPages<Page<LimitView>>(api, 'limits', filter, paging));
}

async function show({ api, out }: Session, _: object, ...words: string[]) {
  const owner = await findLimitOwner(api, words.flat());
  const of = async (filter: Filter, isOwn: (limit: LimitView) => boolean) =>
    (await allOf(api, filter)).filter(isOwn);
  const data = [
    ...(owner.key === null ? [] : await allOf(api, { key: owner.key })),
    ...(owner.team === null ? [] : await of({ team: owner.team }, ({ scope }) => scope.startsWith('team'))),
    ...(owner.group === null ? [] : await of({ scope: 'group' }, ({ group }) => group === owner.group)),
    ...(await allOf(api, { scope: 'installation' })),
  ];
  printLimits(out, { data, next_cursor: null });
  if (data.length === 0)
    out.note(
      `Set one: ${cliCommand(`limits set ${words.flat().map(shellQuoted).join(' ')} --budget 50/month`)}`,
    );
}

/** With what the sums leave out. */
function printLimits(out: Output, page: Page<LimitView>): void {
  out.page(page, { noun: 'limits', columns: COLUMNS });
  const owners = new Set(page.data.filter(({ unpriced }) => unpriced === 'allow').map(ownerOf));
  if (owners.size > 0)
    out.note(
      `\nCalls without a price pass the budgets of ${[...owners].join(', ')} and are not in USED. See them: ${cliCommand('prices missing')}`,
    );
}

type Filter = { team?: string; key?: string; scope?: string };

async function allOf(api: Api, filter: Filter): Promise<LimitView[]> {
  return (await listPages<Page<LimitView>>(api, 'limits', filter, { all: true })).data;
}

async function set(
  { api, out }: Session,
  options: LimitOptions & LimitFilterOptions & { dryRun?: boolean },
  ...words: string[]
): Promise<void> {
  if (!hasLimitOptions(options)) throw new CliError(`nothing to set: give ${LIMIT_OPTION_NAMES}`);
  const owner = await findLimitOwner(api, words.flat());
  const present = await api.get<ShownLimits>(owner.path);
  if (options.dryRun === true) return tryOut({ api, out }, owner, limitMembersOf(options, present), present);
  const changed = await api.patch<ShownLimits>(owner.path, limitMembersOf(options, present));
  out.result(changed, () => `Set the limits of ${owner.name}.`);
  await noteBefore({ api, out }, owner.noted, present.budgets, changed.budgets);
  out.note(`See them: ${cliCommand(`limits show ${words.flat().map(shellQuoted).join(' ')}`)}`);
}

/** Says what the budgets that differ would have done to the calls of the last days. */
async function tryOut(
  { api, out }: Pick<Session, 'api' | 'out'>,
  owner: LimitOwner,
  { budgets }: Partial<ShownLimits>,
  present: ShownLimits,
): Promise<void> {
  const isThere = (budget: Budget) => present.budgets.some((other) => isDeepStrictEqual(other, budget));
  const tried = budgets?.filter((budget) => !isThere(budget)) ?? [];
  if (tried.length === 0)
    throw new CliError(
      '--dry-run tries budgets of all calls of an owner: give --budget, without --each-session',
    );
  const [kind, id] = owner.path.split('/') as [string, string];
  const { data } = await api.post<LimitPreviewResult>('limits/preview', {
    ...(kind === 'limits' ? { owner: id } : { owner: kind.replace(/s$/, ''), owner_id: id }),
    budgets: tried,
  });
  out.result({ data }, () =>
    tried
      .map(({ usd, tokens, period }, i) => {
        const { calls, rejected } = data[i]!;
        return `${usd ?? `${tokens!}tokens`}/${period}: would have rejected ${count(rejected)} of the ${count(calls)} calls of ${owner.name} in the last 7 days.`;
      })
      .join('\n'),
  );
  out.note('Nothing was changed.');
}

async function reset(session: Session, options: { reason: string; subject?: string }, id?: string) {
  const { reason, subject } = options;
  await session.confirm(`Give the budget ${id!} its whole amount again until its period ends?`);
  const limit = await session.api.post<LimitView>(path('limits', id!, 'reset'), {
    reason,
    ...(subject !== undefined && { subject }),
  });
  session.out.result(
    limit,
    () => `Reset ${kindOf(limit)} of ${ownerOf(limit)}: ${limit.left} of ${limit.amount} left.`,
  );
}

function ownerOf({ group, team, key }: LimitView): string {
  if (key !== null) return `${team}/${key}`;
  return team ?? (group === null ? 'installation' : `group ${group}`);
}

function kindOf({ resource, period, scope, providers, models }: LimitView): string {
  const each = scope.endsWith('_end_user') ? ' each user' : scope.endsWith('_session') ? ' each session' : '';
  const calls = [...(providers ?? []), ...(models ?? [])];
  const only = calls.length === 0 ? '' : ` for ${calls.join(', ')}`;
  return `${period === 'at_once' ? 'calls at once' : `${resource}/${period}`}${each}${only}`;
}

function styleOf({ state }: LimitView): Style | undefined {
  return state === 'exhausted' || state === 'blocking' ? 'red' : state === 'warned' ? 'yellow' : undefined;
}

const COLUMNS: readonly Column<LimitView>[] = [
  { head: 'OWNER', cell: ownerOf, min: 12 },
  { head: 'LIMIT', cell: kindOf },
  { head: 'AMOUNT', cell: ({ amount }) => amount, align: 'right' },
  { head: 'USED', cell: ({ used }) => used, align: 'right' },
  { head: 'HELD', cell: ({ held }) => held, align: 'right', drop: 3 },
  { head: 'LEFT', cell: ({ left }) => left, align: 'right', drop: 6 },
  { head: 'STATE', cell: ({ state }) => state, style: styleOf },
  { head: 'LAST NEEDED', cell: ({ last_needed: needed }) => needed, align: 'right', drop: 1 },
  { head: 'MODE', cell: ({ mode }) => mode, drop: 4 },
  { head: 'RESETS', cell: ({ resets_at: at }) => minuteTime(at), drop: 5 },
  { head: 'REJECTED', cell: ({ refused }) => refused, align: 'right', drop: 2 },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

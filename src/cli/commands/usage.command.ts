import { Command } from 'commander';
import { cliCommand } from '../../platform/cli-command.js';
import type { Statement, UsagePage, UsageSums, UsageView } from '../../usage/usage.schema.js';
import { CliError } from '../cli-error.js';
import {
  addCallOptions,
  addPageOptions,
  addTimeOptions,
  type CallOptions,
  callQuery,
  listPages,
  type PageOptions,
  type TimeOptions,
} from '../list-options.js';
import { type Output, write } from '../output.js';
import { action, type Session } from '../session.js';
import { type Cell, type Column, count, money } from '../table.js';

/** The largest page of the admin API. */
const MAX_GROUPS = 500;

interface UsageOptions extends CallOptions, TimeOptions, PageOptions {
  groupBy?: string;
  sort?: string;
  top?: string;
  format?: string;
}

interface StatementOptions {
  team: string;
  month: string;
  tz?: string;
  format?: string;
}

/** `postern usage` */
export function usageCommand(): Command {
  const command = new Command('usage')
    .description('sum up calls, errors, tokens, costs and bytes')
    .option(
      '--group-by <groups>',
      'group, team, key, owner, cost_center, provider, model, end_user, session, tag:<name>, and month, week, day, hour, half_hour or minute, separated by commas (default: team,day)',
    )
    .option(
      '--tz <zone>',
      'time zone of days, weeks and months, for example Europe/Berlin (default: REPORT_TIMEZONE)',
    )
    .option('--sort <sum>', 'largest first: calls, errors, tokens or cost (default: by time and name)')
    .option('--top <n>', 'only the largest n groups, by calls unless --sort is given');
  return addPageOptions(addTimeOptions(addCallOptions(command)))
    .option('--format <format>', 'table, json, or csv: all groups, for spreadsheets (default: table)')
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      `
An error is a call with status 400 or above, or one that the provider or this gateway did not complete.
The last line is the total over all groups, also those that are not shown.

Examples:
  postern usage --group-by team --from 7d --sort tokens
  postern usage --group-by group,team --from 30d
  postern usage --group-by month,cost_center --from 2026-01-01
  postern usage --group-by team,key,model --from 2026-10-01 --to 2026-11-01 --format csv > october.csv
  postern usage --group-by key --from yesterday --to today --status 429 --top 10
  postern usage --group-by key,model --team default --json`,
    )
    .action(action(print))
    .addCommand(statementCommand());
}

function statementCommand(): Command {
  return new Command('statement')
    .description('show what a team has used in a month, by key, provider and model')
    .requiredOption('--team <name or id>', 'the team')
    .requiredOption('--month <month>', 'for example 2026-10')
    .option('--tz <zone>', 'time zone in which the month begins (default: REPORT_TIMEZONE)')
    .option('--format <format>', 'table, json or csv (default: table)')
    .option('--json', 'print the statement as JSON')
    .addHelpText(
      'after',
      `
It is what is counted now: late rows and reprice change it.

Example:
  postern usage statement --team search --month 2026-10 --format csv > search-2026-10.csv`,
    )
    .action(action(printStatement));
}

async function print({ api, out }: Session, { groupBy, sort, top, format, ...options }: UsageOptions) {
  const query = {
    ...(await callQuery(api, options)),
    ...{ group_by: groupBy, tz: await api.zone(), sort: sort ?? (top === undefined ? undefined : 'calls') },
  };
  if (top !== undefined && !(Number(top) >= 1 && Number(top) <= MAX_GROUPS && /^\d+$/.test(top)))
    throw new CliError(`--top must be an integer from 1 to ${MAX_GROUPS}`);
  if (isCsv(format)) {
    if ((top ?? options.limit ?? options.cursor) !== undefined)
      throw new CliError('--format csv has all groups: leave --top, --limit and --cursor out');
    return copy(await api.stream('usage/export', query));
  }
  const paging = top === undefined ? options : { limit: top };
  const page = await listPages<UsagePage>(api, 'usage', query, paging);
  printTable(out, page, top === undefined);
}

type UsageTable = Pick<UsagePage, 'data' | 'totals' | 'next_cursor'>;

function printTable(out: Output, page: UsageTable, continues: boolean): void {
  const { totals } = page;
  const columns = columnsOf(page, totals);
  out.page(page, {
    noun: 'calls',
    columns: columns.map(({ total: _, ...column }) => column),
    ...(totals && { total: columns.map(({ total }, i) => totalCell(i, total?.(totals))) }),
    continues,
  });
  const uncounted = totals?.calls_without_tokens ?? 0;
  if (uncounted > 0 && page.data.length > 0)
    out.note(
      '\nNO COUNTS: calls without token counts from the provider. They add nothing to the token columns.',
    );
  if (totals !== null && totals.unknown_calls > 0 && page.data.length > 0)
    out.note(
      `\ncost ${money(totals.cost_usd ?? '0')} · unknown calls ${count(totals.unknown_calls)} · ${moreOf(totals, 'between ', ' and ')} more\n` +
        'UNKNOWN: calls whose cost is not known, because the provider may have billed what was not read. ' +
        'COST $ leaves them out; MORE $ is what they cost.',
    );
  const unpriced = totals?.unpriced_calls ?? 0;
  if (unpriced > 0 && page.data.length > 0)
    out.note(
      `\nCOST $ leaves out calls whose model has no price (${count(unpriced)}): ${cliCommand('prices missing')}`,
    );
}

async function printStatement({ api, out }: Session, { team, month, format }: StatementOptions) {
  const query = { team, month, tz: await api.zone() };
  if (isCsv(format)) return copy(await api.stream('usage/statement', { ...query, format: 'csv' }));
  const statement = await api.get<Statement>('usage/statement', query);
  if (out.isJson) return out.json(statement);
  const { lines, totals, time_zone: zone, group, owner, cost_center: center, is_over: isOver } = statement;
  out.note(
    `${statement.team}, ${month} (${zone})${group === null ? '' : `, group ${group}`}${owner === null ? '' : `, owner ${owner}`}${center === null ? '' : `, cost center ${center}`}${isOver ? '' : ': the month is not over'}\n`,
  );
  // The team is that of the statement.
  const data = lines.map(({ team_id: _, ...row }) => row);
  printTable(out, { data, totals, next_cursor: null }, false);
}

/** Whether a table for spreadsheets is asked for. @throws CliError for a format that does not exist */
function isCsv(format: string | undefined): boolean {
  if (format !== undefined && !['table', 'json', 'csv'].includes(format))
    throw new CliError('--format must be table, json or csv');
  return format === 'csv';
}

/** Copies a response to standard output. */
async function copy(response: Response): Promise<void> {
  try {
    // Leaving the loop cancels the rest.
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream()))
      if (!(await write(chunk))) return;
  } catch (error) {
    throw new CliError('the table broke off: the output is not complete; run it again', { cause: error });
  }
}

/** The groups have no total: their first cell names the row. */
function totalCell(index: number, total: Cell | undefined): Cell {
  return total === undefined ? (index === 0 ? 'TOTAL' : '') : total;
}

interface UsageColumn extends Column<UsageView> {
  total?: (totals: UsageSums) => Cell;
}

/** The groups of the page, then the sums. */
function columnsOf({ data }: UsageTable, totals: UsageSums | null): readonly UsageColumn[] {
  const [row] = data;
  const has = (name: keyof UsageView) => row !== undefined && name in row;
  const showsUncounted = (totals?.calls_without_tokens ?? 1) > 0;
  const showsUnknown = (totals?.unknown_calls ?? 1) > 0;
  const showsSaved = totals === null || totals.saved_usd !== null;
  const groups: readonly (UsageColumn | false)[] = [
    has('month') && { head: 'MONTH', cell: ({ month }) => month ?? null },
    has('week') && { head: 'WEEK', cell: ({ week }) => week ?? null },
    has('day') && { head: 'DAY', cell: ({ day }) => day ?? null },
    has('hour') && { head: 'HOUR', cell: ({ hour }) => hour ?? null },
    has('half_hour') && { head: 'HALF HOUR', cell: ({ half_hour: start }) => start ?? null },
    has('minute') && { head: 'MINUTE', cell: ({ minute: start }) => start ?? null },
    has('group') && { head: 'GROUP', cell: ({ group }) => group ?? null, min: 8 },
    has('key')
      ? { head: 'KEY', cell: keyOf, min: 12 }
      : // A team that was deleted has only its ID.
        has('team') && { head: 'TEAM', cell: ({ team, team_id: id }) => team ?? id ?? null, min: 8 },
    has('key_prefix') && { head: 'PREFIX', cell: ({ key_prefix: prefix }) => prefix ?? null, drop: 6 },
    has('owner') && { head: 'OWNER', cell: ({ owner }) => owner ?? null, min: 8 },
    has('cost_center') && {
      head: 'COST CENTER',
      cell: ({ cost_center: center }) => center ?? null,
      min: 8,
    },
    has('provider') && { head: 'PROVIDER', cell: ({ provider }) => provider ?? null, min: 8 },
    has('model') && { head: 'MODEL', cell: ({ model }) => model ?? null, min: 12 },
    has('end_user') && { head: 'END USER', cell: ({ end_user: user }) => user ?? null, min: 12 },
    has('session') && { head: 'SESSION', cell: ({ session }) => session ?? null, min: 12 },
    ...Object.keys(row?.tags ?? {}).map((name): UsageColumn => ({
      head: name.toUpperCase(),
      cell: ({ tags }) => tags?.[name] ?? null,
      min: 8,
    })),
  ];
  return [
    ...groups.filter((column) => column !== false),
    number('CALLS', ({ calls }) => calls),
    number('ERRORS', ({ errors }) => errors),
    number(
      'TOKENS',
      ifCounted((sums) => sums.total_tokens),
    ),
    {
      ...number(
        'PROMPT',
        ifCounted((sums) => sums.prompt_tokens),
      ),
      drop: 8,
    },
    {
      ...number(
        'COMPLETION',
        ifCounted((sums) => sums.completion_tokens),
      ),
      drop: 7,
    },
    { ...number('COST $', ({ cost_usd: cost }) => cost && money(cost)), drop: 9 },
    ...(showsUnknown
      ? [
          number('UNKNOWN', (sums) => sums.unknown_calls),
          number('MORE $', (sums) => (sums.unknown_calls === 0 ? null : moreOf(sums))),
        ]
      : []),
    ...(showsSaved
      ? [{ ...number('SAVED $', ({ saved_usd: saved }) => saved && money(saved)), drop: 5 }]
      : []),
    ...(showsUncounted ? [number('NO COUNTS', (sums) => sums.calls_without_tokens)] : []),
    {
      ...number(
        'CACHED',
        ifCounted((sums) => sums.cached_tokens),
      ),
      drop: 4,
    },
    {
      ...number(
        'REASONING',
        ifCounted((sums) => sums.reasoning_tokens),
      ),
      drop: 3,
    },
    { ...number('BYTES IN', (sums) => sums.request_bytes), drop: 2 },
    { ...number('BYTES OUT', (sums) => sums.response_bytes), drop: 1 },
  ];
}

function number(head: string, sum: (sums: UsageSums) => Cell): UsageColumn {
  return { head, cell: sum, total: sum, align: 'right' };
}

/** A sum of tokens; none if the tokens of calls are unknown and no others were counted, which is not the same as 0. */
function ifCounted(sum: (sums: UsageSums) => number): (sums: UsageSums) => Cell {
  return (sums) => (sums.total_tokens === 0 && sums.calls_without_tokens > 0 ? null : sum(sums));
}

/** What calls of unknown cost have cost, in a cell, or with the words of a sentence. */
function moreOf(sums: UsageSums, before = '', between = ' to '): string {
  const { unknown_low_usd: low, unknown_high_usd: high, unbounded_calls: unbounded } = sums;
  const least = money(low ?? '0');
  return unbounded > 0 || high === null ? `at least ${least}` : `${before}${least}${between}${money(high)}`;
}

/** A name of a key is unique only within its team. A key that was deleted has only its ID. */
function keyOf({ team, key, key_id: id }: UsageView): Cell {
  return key == null ? (id ?? null) : `${team ?? '?'}/${key}`;
}

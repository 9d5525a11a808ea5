import { Command } from 'commander';
import type { UsagePage, UsageSums, UsageView } from '../../usage/usage.schema.js';
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
import { action, type Session } from '../session.js';
import type { Cell, Column } from '../table.js';

interface UsageOptions extends CallOptions, TimeOptions, PageOptions {
  groupBy?: string;
  sort?: string;
  top?: string;
}

/** `postern usage` */
export function usageCommand(): Command {
  const command = new Command('usage')
    .description('sum up calls, errors, tokens and bytes')
    .option(
      '--group-by <groups>',
      'team, key, provider, model, day or hour (UTC), separated by commas (default: team,day)',
    )
    .option('--sort <sum>', 'largest first: calls, errors or tokens (default: by time and name)')
    .option('--top <n>', 'only the largest n groups, by calls unless --sort is given');
  return addPageOptions(addTimeOptions(addCallOptions(command)))
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      `
An error is a call with status 400 or above, or one that the provider or this gateway did not complete.
The last line is the total over all groups, also those that are not shown.

Examples:
  postern usage --group-by team --from 7d --sort tokens
  postern usage --group-by key --from yesterday --to today --status 429 --top 10
  postern usage --group-by key,model --team default --json`,
    )
    .action(action(print));
}

async function print({ api, out }: Session, { groupBy, sort, top, ...options }: UsageOptions) {
  const query = {
    ...(await callQuery(api, options)),
    ...{ group_by: groupBy, sort: sort ?? (top === undefined ? undefined : 'calls') },
  };
  const paging = top === undefined ? options : { limit: top };
  const page = await listPages<UsagePage>(api, 'usage', query, paging);
  const { totals } = page;
  const columns = columnsOf(page, totals);
  out.page(page, {
    noun: 'calls',
    columns: columns.map(({ total: _, ...column }) => column),
    ...(totals && { total: columns.map(({ total }, i) => totalCell(i, total?.(totals))) }),
    continues: top === undefined,
  });
  const uncounted = totals?.calls_without_tokens ?? 0;
  if (uncounted > 0 && page.data.length > 0)
    out.note(
      '\nNO COUNTS: calls without token counts from the provider. They add nothing to the token columns.',
    );
}

/** The groups have no total: their first cell names the row. */
function totalCell(index: number, total: Cell | undefined): Cell {
  return total === undefined ? (index === 0 ? 'TOTAL' : '') : total;
}

interface UsageColumn extends Column<UsageView> {
  total?: (totals: UsageSums) => Cell;
}

/** The groups of the page, then the sums. */
function columnsOf({ data }: UsagePage, totals: UsageSums | null): readonly UsageColumn[] {
  const [row] = data;
  const has = (name: keyof UsageView) => row !== undefined && name in row;
  const showsUncounted = (totals?.calls_without_tokens ?? 1) > 0;
  const groups: readonly (UsageColumn | false)[] = [
    has('day') && { head: 'DAY', cell: ({ day }) => day ?? null },
    has('hour') && { head: 'HOUR', cell: ({ hour }) => hour ?? null },
    has('key')
      ? { head: 'KEY', cell: keyOf, min: 12 }
      : // A team that was deleted has only its ID.
        has('team') && { head: 'TEAM', cell: ({ team, team_id: id }) => team ?? id ?? null, min: 8 },
    has('key_prefix') && { head: 'PREFIX', cell: ({ key_prefix: prefix }) => prefix ?? null, drop: 6 },
    has('provider') && { head: 'PROVIDER', cell: ({ provider }) => provider ?? null, min: 8 },
    has('model') && { head: 'MODEL', cell: ({ model }) => model ?? null, min: 12 },
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

/** A sum of tokens; none if no call of the group has token counts, which is not the same as 0. */
function ifCounted(sum: (sums: UsageSums) => number): (sums: UsageSums) => Cell {
  return (sums) => (sums.calls_without_tokens === sums.calls ? null : sum(sums));
}

/** A name of a key is unique only within its team. A key that was deleted has only its ID. */
function keyOf({ team, key, key_id: id }: UsageView): Cell {
  return key == null ? (id ?? null) : `${team ?? '?'}/${key}`;
}

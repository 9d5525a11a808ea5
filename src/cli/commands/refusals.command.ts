import { Command } from 'commander';
import type { RefusalPage, RefusalView } from '../../refusals/refusals.schema.js';
import { addRangeOptions } from '../list-options.js';
import { findKeyId } from '../lookup.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, parseRange } from '../times.js';

interface RefusalOptions {
  groupBy?: string;
  interval?: string;
  team?: string;
  key?: string;
  code?: string;
  limit?: string;
  from?: string;
  to?: string;
}

/** `postern refusals` */
export function refusalsCommand(): Command {
  const command = new Command('refusals')
    .description('count the requests that the gateway rejected, by reason')
    .option(
      '--group-by <groups>',
      'team, key, code, limit, provider and model, separated by commas (default: key,code,limit)',
    )
    .option('--interval <interval>', 'also by minute, hour or day')
    .option('--team <name or id>', 'filter by team')
    .option('--key <key>', 'filter by key: team/name, prefix or ID')
    .option('--code <code>', 'filter by reason, for example insufficient_quota');
  return addRangeOptions(command)
    .option('--limit <n>', 'number of groups, 1 to 500 (default: 50)')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      `
Without --from, those of the last 24 hours. These requests were not forwarded: they have no row in the request log.

Examples:
  postern refusals
  postern refusals --key search/ci --from 7d --interval day
  postern refusals --code insufficient_quota --group-by limit,model`,
    )
    .action(action(print));
}

async function print({ api, out }: Session, options: RefusalOptions) {
  const { groupBy, key, from, to, interval, team, code, limit } = options;
  const zone = await api.zone();
  const query = {
    group_by: groupBy,
    interval,
    tz: zone,
    team,
    code,
    limit,
    ...parseRange({ from, to }, zone),
  };
  const page = await api.get<RefusalPage>('refusals', {
    ...query,
    ...(key !== undefined && { key: await findKeyId(api, key) }),
  });
  const columns = columnsOf(page.data);
  out.page(page, {
    noun: 'rejected requests',
    columns,
    total: columns.map(({ head }, i) => (head === 'CALLS' ? page.calls : i === 0 ? 'TOTAL' : '')),
    continues: false,
  });
}

function columnsOf([row]: readonly RefusalView[]): readonly Column<RefusalView>[] {
  const has = (name: keyof RefusalView) => row !== undefined && name in row;
  const columns: readonly (Column<RefusalView> | false)[] = [
    has('start') && { head: 'START', cell: ({ start }) => minuteTime(start ?? null) },
    has('key')
      ? { head: 'KEY', cell: keyOf, min: 12 }
      : has('team') && { head: 'TEAM', cell: ({ team }) => team ?? null, min: 8 },
    has('code') && { head: 'REASON', cell: ({ code }) => code ?? null },
    has('limit') && { head: 'LIMIT', cell: ({ limit }) => limit ?? null },
    has('provider') && { head: 'PROVIDER', cell: ({ provider }) => provider ?? null },
    has('model') && { head: 'MODEL', cell: ({ model }) => model ?? null, min: 12 },
    { head: 'CALLS', cell: ({ calls }) => calls, align: 'right' },
    { head: 'LAST', cell: ({ last_at: at }) => minuteTime(at) },
    { head: 'LAST REQUEST', cell: ({ last_request_id: id }) => id, drop: 1 },
  ];
  return columns.filter((column) => column !== false);
}

function keyOf({ team, key }: RefusalView): string {
  if (team === null && key === null) return '(no valid key)';
  return team == null ? (key ?? '') : `${team}/${key ?? ''}`;
}

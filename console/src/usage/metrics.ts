import type { ResponseOf } from '../api/client';
import type { QUERY_VALUES } from '../api/query-values';
import { compactUsd, formatUsd, nanoOf } from '../figures/money';
import { compactTick, count } from '../figures/numbers';
import type { Interval } from '../url/calendar';

export type UsagePage = ResponseOf<'/admin/v1/usage', 'get'>;
export type UsageRow = UsagePage['data'][number];
export type UsageSums = NonNullable<UsagePage['totals']>;

/** A figure that charts and rankings can show. */
export interface Metric {
  id: (typeof QUERY_VALUES.getUsage.sort)[number];
  label: string;
  /** What is counted: "USD". */
  unit: string;
  /** The value of a group as a whole number; money in billionths of a dollar. */
  of: (sums: Pick<UsageSums, 'calls' | 'errors' | 'total_tokens' | 'cost_usd'>) => number;
  /** False for a group whose value is unknown. */
  isKnown?: (sums: Pick<UsageSums, 'calls' | 'cost_usd'>) => boolean;
  /** Said of a chart in which none is known. */
  unknown?: string;
  format: (value: number) => string;
  formatAxis: (value: number) => string;
}

export const METRICS: readonly Metric[] = [
  {
    id: 'cost',
    label: 'Cost',
    unit: 'USD',
    of: ({ cost_usd }) => Number(nanoOf(cost_usd)),
    // No call has a cost: all are of models without a price.
    isKnown: ({ calls, cost_usd }) => calls === 0 || cost_usd !== null,
    unknown:
      'The costs are not known: none of these calls has one, for example because its model has no price.',
    format: (value) => formatUsd(BigInt(Math.round(value))),
    formatAxis: (value) => compactUsd(value / 1e9),
  },
  {
    id: 'calls',
    label: 'Calls',
    unit: 'Calls',
    of: ({ calls }) => calls,
    format: count,
    formatAxis: compactTick,
  },
  {
    id: 'tokens',
    label: 'Tokens',
    unit: 'Tokens',
    of: ({ total_tokens }) => total_tokens,
    format: count,
    formatAxis: compactTick,
  },
  {
    id: 'errors',
    label: 'Errors',
    unit: 'Failed calls',
    of: ({ errors }) => errors,
    format: count,
    formatAxis: compactTick,
  },
];

/** What an axis counts: "USD per day". */
export function perInterval(unit: string, interval: Interval): string {
  return `${unit} per ${interval.replace('_', ' ')}`;
}

export function metricOf(id: string | undefined): Metric {
  return METRICS.find((metric) => metric.id === id) ?? METRICS[0]!;
}

/** What usage can be grouped by. */
export const DIMENSIONS = {
  group: 'Group',
  team: 'Team',
  key: 'Key',
  owner: 'Owner',
  cost_center: 'Cost center',
  provider: 'Provider',
  model: 'Model',
  end_user: 'End user',
  session: 'Session',
} as const;
export type Dimension = keyof typeof DIMENSIONS;

export function dimensionOf(text: string | undefined, fallback: Dimension): Dimension {
  return text !== undefined && Object.hasOwn(DIMENSIONS, text) ? (text as Dimension) : fallback;
}

/** The name of a row's group, for people. */
export function groupLabel(row: UsageRow, dimension: Dimension): string {
  switch (dimension) {
    case 'group':
      return row.group ?? 'No group';
    case 'team':
      return row.team ?? 'Deleted team';
    case 'key':
      return row.key === null || row.key === undefined ? 'Deleted key' : `${row.team ?? '?'} / ${row.key}`;
    case 'owner':
      return row.owner ?? 'No owner';
    case 'cost_center':
      return row.cost_center ?? 'No cost center';
    case 'provider':
      return row.provider ?? '–';
    case 'model':
      return row.model ?? 'No model';
    case 'end_user':
      return row.end_user ?? 'No end user';
    case 'session':
      return row.session ?? 'No session';
  }
}

/** What identifies a row's group, and filters for it; undefined for calls without a value, for which there is no filter. */
export function groupValue(row: UsageRow, dimension: Dimension): string | undefined {
  const value = dimension === 'team' ? row.team_id : dimension === 'key' ? row.key_id : row[dimension];
  return value ?? undefined;
}

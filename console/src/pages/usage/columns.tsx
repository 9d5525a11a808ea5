import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { QUERY_VALUES } from '../../api/query-values';
import { PageLink } from '../../display/links';
import { Compact, Money } from '../../figures/figure';
import { GroupName } from '../../usage/group-name';
import { change, count, duration, percent } from '../../figures/numbers';
import type { Column } from '../../table/data-table';
import { memberOf, sharedState, useUrlState } from '../../url/url-state';
import {
  type Dimension,
  DIMENSIONS,
  groupLabel,
  groupValue,
  type Metric,
  type UsagePage,
  type UsageRow,
  type UsageSums,
} from '../../usage/metrics';
import { moreOf } from '../../usage/unknown-cost';

/** Input tokens that were neither read from nor written to the provider's cache. */
export function uncached({ prompt_tokens, cached_tokens, cache_write_tokens }: UsageSums): number {
  return prompt_tokens - cached_tokens - cache_write_tokens;
}

const FIGURES: readonly { id: string; header: string; of: (sums: UsageSums) => ReactNode }[] = [
  { id: 'cost', header: 'Cost', of: (sums) => <Money usd={sums.cost_usd} /> },
  { id: 'calls', header: 'Calls', of: ({ calls }) => count(calls) },
  {
    id: 'errors',
    header: 'Errors',
    of: ({ errors, calls }) => <span title={percent(errors, calls)}>{count(errors)}</span>,
  },
  { id: 'uncached', header: 'Uncached input', of: (sums) => <Compact value={uncached(sums)} /> },
  { id: 'cached', header: 'Cached input', of: (sums) => <Compact value={sums.cached_tokens} /> },
  { id: 'output', header: 'Output', of: (sums) => <Compact value={sums.completion_tokens} /> },
];
/** Columns that the gateway sorts by, and what it calls them. */
export const SORTS: Readonly<Record<string, (typeof QUERY_VALUES.getUsage.sort)[number]>> = {
  cost: 'cost',
  calls: 'calls',
  errors: 'errors',
  cached: 'cached_tokens',
  written: 'cache_write_tokens',
  output: 'completion_tokens',
  p95: 'p95',
};
/** Shown only if there are any: most providers charge nothing for them. */
const WRITTEN = {
  id: 'written',
  header: 'Cache writes',
  of: (sums: UsageSums) => <Compact value={sums.cache_write_tokens} />,
};

/** Shown only if calls came from the response cache. */
const SAVED = {
  id: 'saved',
  header: 'Saved by cache',
  of: (sums: UsageSums) => (sums.saved_usd === null ? '–' : <Money usd={sums.saved_usd} />),
};

/** Shown only if there are calls of unknown cost. */
const UNKNOWN = {
  id: 'unknown',
  header: 'Unknown cost',
  of: (sums: UsageSums) =>
    sums.unknown_calls === 0 ? (
      '–'
    ) : (
      <>
        {count(sums.unknown_calls)}
        <Text size="xs" c="dimmed" span display="block">
          {moreOf(sums)}
        </Text>
      </>
    ),
};

/** Shown only if there are such calls. */
const UNPRICED = {
  id: 'unpriced',
  header: 'No price',
  of: ({ unpriced_calls: calls }: UsageSums) => (calls === 0 ? '–' : count(calls)),
};

/** The groups, the change of the chosen metric, and all figures. */
export function columnsFor(
  dimensions: readonly Dimension[],
  previous: UsagePage | undefined,
  metric: Metric,
  totals: UsageSums | null | undefined,
): readonly Column<UsageRow>[] {
  const before = new Map(previous?.data.map((row) => [rowKey(row, dimensions), row]));
  const isWhole = previous !== undefined && previous.next_cursor === null;
  return [
    ...dimensions.map((dimension): Column<UsageRow> => ({
      id: dimension,
      header: DIMENSIONS[dimension],
      oneLine: true,
      cell: (row) => <GroupLink row={row} dimension={dimension} besideTeam={dimensions.includes('team')} />,
    })),
    ...FIGURES.slice(0, 1).map(asColumn),
    {
      id: 'change',
      header: `Change of ${metric.label.toLowerCase()}`,
      align: 'right',
      cell: (row) => {
        const earlier = before.get(rowKey(row, dimensions));
        if (earlier === undefined && !isWhole) return '–';
        return change(metric.of(row), earlier === undefined ? 0 : metric.of(earlier)).text;
      },
    },
    ...FIGURES.slice(1).map((figure) => {
      const { id } = figure;
      const column = asColumn(figure);
      if (id !== 'calls' && id !== 'errors') return column;
      return {
        ...column,
        cell: (row: UsageRow) => (
          <CallsLink row={row} dimensions={dimensions} failed={id === 'errors'}>
            {count(row[id])}
          </CallsLink>
        ),
      };
    }),
    ...(totals != null && totals.cache_write_tokens > 0 ? [asColumn(WRITTEN)] : []),
    ...(totals != null && totals.unknown_calls > 0 ? [asColumn(UNKNOWN)] : []),
    ...(totals != null && totals.unpriced_calls > 0 ? [asColumn(UNPRICED)] : []),
    ...(totals != null && totals.saved_usd !== null ? [asColumn(SAVED)] : []),
    { id: 'p50', header: 'p50', align: 'right', cell: ({ p50_ms }) => duration(p50_ms) },
    { id: 'p95', header: 'p95', align: 'right', sorts: true, cell: ({ p95_ms }) => duration(p95_ms) },
  ];
}

function asColumn({ id, header, of }: (typeof FIGURES)[number]): Column<UsageRow> {
  return { id, header, align: 'right', cell: of, sorts: id in SORTS };
}

/** The row of sums. */
export function totalsOf(
  sums: UsageSums | null | undefined,
  dimensions: readonly Dimension[],
): Record<string, ReactNode> | undefined {
  if (sums === null || sums === undefined) return undefined;
  return {
    [dimensions[0] ?? 'team']: 'Total',
    ...Object.fromEntries(
      [...FIGURES, WRITTEN, SAVED, UNKNOWN, UNPRICED].map(({ id, of }) => [id, of(sums)]),
    ),
  };
}

export function rowKey(row: UsageRow, dimensions: readonly Dimension[]): string {
  return JSON.stringify(dimensions.map((dimension) => groupValue(row, dimension) ?? null));
}

interface GroupLinkProps {
  row: UsageRow;
  dimension: Dimension;
  /** Another column has the team. */
  besideTeam: boolean;
}

/** A group's name, which leads to what it consists of; calls without a value have no filter. */
function GroupLink({ row, dimension, besideTeam }: GroupLinkProps) {
  const [url] = useUrlState();
  const value = groupValue(row, dimension);
  const label = groupLabel(row, dimension);
  if (value === undefined) return <>{label}</>;
  // Requests have no filter for it.
  if (dimension === 'owner' || dimension === 'cost_center') {
    return (
      <PageLink
        to="/keys"
        search={{ ...sharedState(url), [dimension]: value }}
        size="sm"
        title={`Keys of ${label}`}
      >
        {label}
      </PageLink>
    );
  }
  // What is grouped by it already is divided by the next one.
  const next = DIVIDED_BY[dimension];
  return (
    <PageLink
      to="/usage"
      search={{ ...url, ...memberOf(dimension, value), by: next, then: undefined, sort: undefined }}
      size="sm"
      title={`${label}: usage by ${DIMENSIONS[next].toLowerCase()}`}
      display="block"
      className="wrapped"
    >
      {dimension === 'key' && besideTeam ? (row.key ?? label) : <GroupName row={row} dimension={dimension} />}
    </PageLink>
  );
}

/** What a group consists of. */
const DIVIDED_BY: Record<Exclude<Dimension, 'owner' | 'cost_center'>, Dimension> = {
  group: 'team',
  team: 'key',
  key: 'model',
  provider: 'model',
  model: 'key',
  end_user: 'model',
  session: 'model',
};

/** A count of calls, which leads to them; calls without a value of a group have no filter. */
function CallsLink({
  row,
  dimensions,
  failed = false,
  children,
}: {
  row: UsageRow;
  dimensions: readonly Dimension[];
  failed?: boolean;
  children: string;
}) {
  const [{ by: _by, then: _then, metric: _metric, sort: _sort, ...filter }] = useUrlState();
  const values = dimensions.map((dimension) => groupValue(row, dimension));
  const isFiltered = !dimensions.includes('owner') && !dimensions.includes('cost_center');
  if (children === '0' || !isFiltered || values.includes(undefined)) return <>{children}</>;
  const groups = Object.fromEntries(dimensions.map((dimension, i) => [dimension, values[i]]));
  return (
    <PageLink
      to="/requests"
      search={{
        ...filter,
        range: filter.range ?? (filter.from === undefined ? '30d' : undefined),
        ...groups,
        ...(failed && { failed: 'true' }),
      }}
      size="sm"
      title={failed ? 'Show the failed requests' : 'Show the requests'}
    >
      {children}
    </PageLink>
  );
}

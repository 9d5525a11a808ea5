import type { ReactNode } from 'react';
import { PageLink } from '../../display/links';
import { Compact, Money } from '../../figures/figure';
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
  { id: 'written', header: 'Cache writes', of: (sums) => <Compact value={sums.cache_write_tokens} /> },
  { id: 'output', header: 'Output', of: (sums) => <Compact value={sums.completion_tokens} /> },
];
/** Shown only if calls came from the response cache. */
const SAVED = {
  id: 'saved',
  header: 'Saved by cache',
  of: (sums: UsageSums) => (sums.saved_usd === null ? '–' : <Money usd={sums.saved_usd} />),
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
    ...FIGURES.slice(1).map(asColumn),
    ...(totals != null && totals.saved_usd !== null ? [asColumn(SAVED)] : []),
    { id: 'p50', header: 'p50', align: 'right', cell: ({ p50_ms }) => duration(p50_ms) },
    { id: 'p95', header: 'p95', align: 'right', cell: ({ p95_ms }) => duration(p95_ms) },
  ];
}

function asColumn({ id, header, of }: (typeof FIGURES)[number]): Column<UsageRow> {
  return { id, header, align: 'right', cell: of };
}

/** The row of sums. */
export function totalsOf(
  sums: UsageSums | null | undefined,
  dimensions: readonly Dimension[],
): Record<string, ReactNode> | undefined {
  if (sums === null || sums === undefined) return undefined;
  return {
    [dimensions[0] ?? 'team']: 'Total',
    ...Object.fromEntries([...FIGURES, SAVED].map(({ id, of }) => [id, of(sums)])),
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

/** A group's name, which leads to its requests; calls without a value have no filter. */
function GroupLink({ row, dimension, besideTeam }: GroupLinkProps) {
  const [url] = useUrlState();
  const value = groupValue(row, dimension);
  const label = groupLabel(row, dimension);
  if (value === undefined) return <>{label}</>;
  // Requests have no filter for it.
  if (dimension === 'cost_center') {
    return (
      <PageLink
        to="/keys"
        search={{ ...sharedState(url), cost_center: value }}
        size="sm"
        title={`Keys of ${label}`}
      >
        {label}
      </PageLink>
    );
  }
  return (
    <PageLink
      to="/requests"
      search={{ ...sharedState(url), ...memberOf(dimension, value) }}
      size="sm"
      title={`Requests of ${label}`}
      className="truncated"
    >
      {dimension === 'key' && besideTeam ? (row.key ?? label) : label}
    </PageLink>
  );
}

import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { loadAll } from '../api/load-all';
import type { QUERY_VALUES } from '../api/query-values';
import { OTHER_COLOR, SERIES_COLORS } from '../app/theme';
import type { ChartPeriod, ChartSeries } from '../charts/series';
import { dayOfYear, exactTime, shortDate, shortTime, timeOfDay } from '../figures/times';
import type { CallFilter } from '../filters/fields';
import { addPeriods, DAY_MS, periodsBetween } from '../url/calendar';
import type { TimeRange } from '../url/time-range';
import {
  type Dimension,
  groupLabel,
  groupValue,
  type Metric,
  type UsagePage,
  type UsageRow,
} from './metrics';

export interface UsageQuery extends CallFilter {
  group_by: string;
  from: string;
  to: string;
  tz?: string;
  sort?: (typeof QUERY_VALUES.getUsage.sort)[number];
  series?: number;
  limit?: number;
  cursor?: string;
}
/** Which calls are counted. */
export type UsageFilter = CallFilter;

const REFRESH_MS = 30_000;
/** More series cannot be told apart. */
const SHOWN_SERIES = 8;
const MAX_PAGE = 500;

/** What was shown before, while something else is loaded: if it has the same groups. */
function previousOf({ group_by }: UsageQuery) {
  return <T>(previous: T | undefined, from: { queryKey: readonly unknown[] } | undefined) =>
    from !== undefined && isGroupedBy(from.queryKey, group_by) ? previous : undefined;
}

/** Whether a query of usage has the groups: those of others would be without a name here, and all have one identity. */
export function isGroupedBy([, query]: readonly unknown[], groupBy: string): boolean {
  return (query as Pick<UsageQuery, 'group_by'>).group_by === groupBy;
}

export function useUsage(query: UsageQuery, enabled = true, refetchInterval = REFRESH_MS) {
  return useQuery({
    queryKey: ['usage', query],
    queryFn: ({ signal }) => api.get('/admin/v1/usage', { query, signal }),
    placeholderData: previousOf(query),
    enabled,
    refetchInterval,
  });
}

/** The rows of all pages. */
function useRows(query: UsageQuery) {
  return useQuery({
    queryKey: ['usage', query, 'all'],
    queryFn: ({ signal }) =>
      loadAll<UsageRow>((page) => api.get('/admin/v1/usage', { query: { ...query, ...page }, signal })),
    placeholderData: previousOf(query),
    refetchInterval: REFRESH_MS,
  });
}

export interface UsageSeries {
  periods: ChartPeriod[];
  series: ChartSeries[];
  /** Sums over all calls of the range. */
  totals: UsagePage['totals'] | undefined;
  /** Groups, the largest first. */
  groups: UsageRow[] | undefined;
  hasMoreGroups: boolean;
  asOf: string | undefined;
  error: unknown;
  pending: boolean;
  retry: () => void;
}

/**
 * A metric by group and period: the largest groups one by one, and all others as what is missing from the total, so that a
 * chart adds up however many groups there are. Three requests, or some more for hundreds of periods.
 */
export function useUsageSeries(
  range: TimeRange,
  dimension: Dimension,
  metric: Metric,
  filter: UsageFilter,
): UsageSeries {
  const { interval, zone } = range;
  const base = { ...filter, ...range.query, tz: zone };
  const periods = periodsOf(range);
  const total = useUsage({ ...base, group_by: interval, limit: MAX_PAGE });
  const ranked = useUsage({ ...base, group_by: dimension, sort: metric.id, limit: 50 });
  const groups = ranked.data?.data;
  const top = (groups ?? []).slice(0, SHOWN_SERIES);
  const largest = useRows({
    ...base,
    group_by: `${dimension},${interval}`,
    sort: metric.id,
    series: SHOWN_SERIES,
  });
  const values = (found: readonly UsageRow[]) => {
    const byPeriod = new Map(
      found.map((row) => [row[interval], metric.isKnown?.(row) === false ? null : metric.of(row)]),
    );
    return periods.map(({ name }) => {
      const value = byPeriod.get(name);
      return value === undefined ? 0 : value;
    });
  };
  const series = top.flatMap((group, index): ChartSeries[] => {
    if (largest.data === undefined) return [];
    const id = groupValue(group, dimension);
    const found = largest.data.rows.filter((row) => groupValue(row, dimension) === id);
    return [
      {
        id: id ?? 'none',
        label: groupLabel(group, dimension),
        color: SERIES_COLORS[index]!,
        values: values(found),
      },
    ];
  });
  const sums = values(total.data?.data ?? []);
  const others = sums.map(
    (sum, index) => (sum ?? 0) - series.reduce((part, { values: of }) => part + (of[index] ?? 0), 0),
  );
  if (groups !== undefined && others.some((value) => value > 0)) {
    series.push({
      id: 'others',
      label: 'All others',
      color: OTHER_COLOR,
      values: others.map((value) => Math.max(0, value)),
    });
  }
  const all = [total, ranked, largest];
  return {
    periods: periods.map(({ start, end, label, tick }) => ({ start, end, label, tick })),
    series,
    totals: total.data?.totals,
    groups,
    hasMoreGroups: ranked.data?.next_cursor !== null,
    asOf: total.data?.as_of,
    error: all.find(({ error }) => error !== null)?.error,
    pending: all.some(({ isPending }) => isPending),
    retry: () => all.forEach((query) => void query.refetch()),
  };
}

/** The periods of a chart with the names that the API gives them. */
export function periodsOf(range: TimeRange): (ChartPeriod & { name: string })[] {
  const { from, to, interval, zone } = range;
  const isTimes = interval === 'minute' || interval === 'half_hour' || interval === 'hour';
  const text = isTimes ? shortTime : shortDate;
  // The range of the page says which day or year it is.
  const ticks = !isTimes ? dayOfYear : to.getTime() - from.getTime() < 2 * DAY_MS ? timeOfDay : shortTime;
  return periodsBetween(from, to, interval, zone).map(({ name, start }) => ({
    name,
    start: start < from ? from : start,
    end: earlier(addPeriods(interval, start, 1, zone), to),
    label: interval === 'month' ? exactTime(start, zone).slice(0, 7) : text(start, zone),
    tick: interval === 'month' ? exactTime(start, zone).slice(0, 7) : ticks(start, zone),
  }));
}

function earlier(a: Date, b: Date): Date {
  return a < b ? a : b;
}

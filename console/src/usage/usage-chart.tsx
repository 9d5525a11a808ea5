import { SegmentedControl, Select } from '@mantine/core';
import { ChartPanel } from '../charts/chart-panel';
import { EmptyState } from '../display/empty-state';
import { ErrorAlert } from '../display/error-alert';
import type { TimeRange } from '../url/time-range';
import { useUrlState } from '../url/url-state';
import { type Dimension, DIMENSIONS, type Metric, METRICS, perInterval } from './metrics';
import type { UsageSeries } from './use-usage';

interface Props {
  range: TimeRange;
  metric: Metric;
  dimension: Dimension;
  dimensions: readonly Dimension[];
  usage: UsageSeries;
  height?: number;
}

/** The stacked chart of usage over time, with its metric and its grouping. Dragging over it narrows the page's range. */
export function UsageChart({ range, metric, dimension, dimensions, usage, height }: Props) {
  const [, setUrl] = useUrlState();
  const { periods, series, error, pending, retry, totals } = usage;
  if (error !== null && error !== undefined) return <ErrorAlert error={error} retry={retry} />;
  const zoom = (from: Date, to: Date) =>
    setUrl({ range: undefined, from: from.toISOString(), to: to.toISOString() });
  const controls = (
    <>
      <SegmentedControl
        size="xs"
        aria-label="Metric"
        value={metric.id}
        onChange={(value) => setUrl({ metric: value === 'cost' ? undefined : value }, { replace: true })}
        data={METRICS.map(({ id, label }) => ({ value: id, label }))}
      />
      <Select
        size="xs"
        w={130}
        aria-label="Group by"
        allowDeselect={false}
        value={dimension}
        onChange={(value) => setUrl({ by: value ?? undefined }, { replace: true })}
        data={dimensions.map((id) => ({ value: id, label: `By ${DIMENSIONS[id].toLowerCase()}` }))}
      />
    </>
  );
  return (
    <ChartPanel
      label={`${metric.label} by ${DIMENSIONS[dimension].toLowerCase()} and ${range.interval.replace('_', ' ')}`}
      periods={periods}
      series={series}
      format={metric.format}
      unit={perInterval(metric.unit, range.interval)}
      formatAxis={metric.formatAxis}
      unknown={metric.unknown}
      height={height}
      loading={pending && totals === undefined}
      onZoom={periods.length > 1 ? zoom : undefined}
      empty={
        totals !== undefined && totals?.calls === 0 ? (
          <EmptyState title="No calls in this time range">
            Choose a longer range, or remove a filter.
          </EmptyState>
        ) : undefined
      }
    >
      {controls}
    </ChartPanel>
  );
}

import { Group, SegmentedControl, Text } from '@mantine/core';
import { useState } from 'react';
import { ChartPanel } from '../charts/chart-panel';
import { ErrorAlert } from '../display/error-alert';
import { Compact, Money } from '../figures/figure';
import { percent } from '../figures/numbers';
import { type Preset, useTimeRange } from '../url/time-range';
import { type Dimension, type Metric, metricOf, METRICS, perInterval } from './metrics';
import { UnknownCost } from './unknown-cost';
import { type UsageFilter, useUsageSeries } from './use-usage';

/** The usage of one team or key in the time range of the page. */
export function OwnUsage({
  filter,
  by,
  fallback = '30d',
  shows = 'cost',
}: {
  filter: UsageFilter;
  by: Dimension;
  /** The range of the page if its URL names none. */
  fallback?: Preset;
  /** The metric of the chart until another one is chosen. */
  shows?: Metric['id'];
}) {
  const range = useTimeRange(fallback);
  const [chosen, setChosen] = useState<Metric['id']>();
  const metric = metricOf(chosen ?? shows);
  const { periods, series, totals, error, pending, retry } = useUsageSeries(range, by, metric, filter);
  if (error) return <ErrorAlert error={error} retry={retry} />;
  return (
    <>
      <ChartPanel
        label={`${metric.label} by ${by} ${range.phrase}`}
        periods={periods}
        series={series}
        format={metric.format}
        unit={perInterval(metric.unit, range.interval)}
        formatAxis={metric.formatAxis}
        unknown={metric.unknown}
        height={160}
        loading={pending && totals === undefined}
        empty={
          totals !== undefined && totals?.calls === 0 ? (
            <Text size="sm" c="dimmed" py="md">
              No calls {range.phrase}.
            </Text>
          ) : undefined
        }
      >
        <SegmentedControl
          size="xs"
          aria-label="Metric"
          value={metric.id}
          onChange={(id) => setChosen(metricOf(id).id)}
          data={METRICS.map(({ id, label }) => ({ value: id, label }))}
        />
      </ChartPanel>
      {totals !== undefined && totals !== null && totals.calls > 0 && (
        <Group gap="lg" mt="xs">
          <Text size="sm" c="dimmed">
            {range.label}
          </Text>
          <Text size="sm">
            <Text span c="dimmed" size="sm">
              Cost{' '}
            </Text>
            <Money usd={totals.cost_usd} />
          </Text>
          <UnknownCost sums={totals} />
          <Text size="sm">
            <Text span c="dimmed" size="sm">
              Calls{' '}
            </Text>
            <Compact value={totals.calls} />
          </Text>
          <Text size="sm">
            <Text span c="dimmed" size="sm">
              Tokens{' '}
            </Text>
            <Compact value={totals.total_tokens} />
          </Text>
          <Text size="sm">
            <Text span c="dimmed" size="sm">
              Errors{' '}
            </Text>
            {percent(totals.errors, totals.calls)}
          </Text>
        </Group>
      )}
    </>
  );
}

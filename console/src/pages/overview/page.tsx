import { Anchor, Grid, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { RelativeTime } from '../../figures/figure';
import { EmptyState } from '../../display/empty-state';
import { LoadingRows } from '../../display/loading';
import { PageHeader } from '../../display/page-header';
import { Section } from '../../display/section';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useTimeRange } from '../../url/time-range';
import { sharedState, useUrlState } from '../../url/url-state';
import { dimensionOf, metricOf } from '../../usage/metrics';
import { UsageChart } from '../../usage/usage-chart';
import { useUsage, useUsageSeries } from '../../usage/use-usage';
import { Budgets } from './budgets';
import { Cards } from './cards';
import { Ranking } from './ranking';

/** Brings the tables along, which the rest of the page does not need. */
const ProviderHealth = lazy(() => import('./provider-health'));

export default function Overview() {
  const [url] = useUrlState();
  const range = useTimeRange('30d');
  const metric = metricOf(url.metric);
  const dimension = dimensionOf(url.by, 'team');
  const usage = useUsageSeries(range, dimension, metric, {});
  const previous = useUsage({ ...range.previousQuery, group_by: 'provider', tz: range.zone, limit: 1 });
  const isEmpty = usage.totals?.calls === 0;
  return (
    <>
      <PageHeader
        title="Overview"
        description={
          usage.asOf === undefined ? (
            'Counting calls …'
          ) : (
            <>
              Complete up to <RelativeTime at={usage.asOf} />
            </>
          )
        }
      >
        <TimeRangePicker range={range} />
      </PageHeader>
      <Stack gap="md">
        <Cards totals={usage.totals} previous={previous.data?.totals} range={range} />
        <Section title={`${metric.label} over time`}>
          {isEmpty && url.from === undefined && <FirstCall />}
          {(!isEmpty || url.from !== undefined) && (
            <UsageChart
              range={range}
              metric={metric}
              dimension={dimension}
              dimensions={['team', 'key', 'model', 'provider']}
              usage={usage}
            />
          )}
        </Section>
        <Grid gap="md">
          {(['team', 'model', 'key'] as const).map((by) => (
            <Grid.Col key={by} span={{ base: 12, md: 4 }}>
              <Ranking range={range} dimension={by} metric={metric} />
            </Grid.Col>
          ))}
          <Grid.Col span={{ base: 12, md: 6 }}>
            <Budgets />
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 6 }}>
            <Suspense fallback={<LoadingRows />}>
              <ProviderHealth zone={range.zone} />
            </Suspense>
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );

  function FirstCall() {
    return (
      <EmptyState
        title={`No calls in ${range.label.toLowerCase().replace('custom range', 'this range')}`}
        action={
          <Anchor component={Link} to="/keys" search={sharedState(url) as never} underline="always">
            Create a key and make the first call
          </Anchor>
        }
      >
        <Text size="sm">Calls appear here a few seconds after they end.</Text>
      </EmptyState>
    );
  }
}

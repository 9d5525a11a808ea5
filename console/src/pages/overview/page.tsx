import { Grid, Stack } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ApiError } from '../../api/client';
import { partOf } from '../../app/lazy-part';
import { providersQuery } from '../../api/load-all';
import { useIsMember } from '../../app/session';
import { CompleteUpTo } from '../../display/complete-up-to';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { PageHeader } from '../../display/page-header';
import { Section } from '../../display/section';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useTimeRange } from '../../url/time-range';
import { sharedState, useUrlState } from '../../url/url-state';
import { dimensionOf, metricOf } from '../../usage/metrics';
import { UsageChart } from '../../usage/usage-chart';
import { useUsage, useUsageSeries } from '../../usage/use-usage';
import { Attention } from './attention';
import { Cards } from './cards';
import { Ranking } from './ranking';

/** Below what is seen first; the second one brings the tables along. */
const Budgets = partOf(
  'overview-budgets',
  () => import('./budgets'),
  () => <LoadingRows />,
);
const Providers = partOf(
  'overview-providers',
  () => import('./providers'),
  () => <LoadingRows />,
);

export default function Overview() {
  const [url] = useUrlState();
  const range = useTimeRange('30d');
  const metric = metricOf(url.metric);
  const dimension = dimensionOf(url.by, 'team');
  const usage = useUsageSeries(range, dimension, metric, {});
  const previous = useUsage({ ...range.previousQuery, group_by: 'provider', tz: range.zone, limit: 1 });
  const isEmpty = usage.totals?.calls === 0;
  const client = useQueryClient();
  const header = (
    <PageHeader title="Overview" description={<CompleteUpTo asOf={usage.asOf} error={usage.error} />}>
      <TimeRangePicker range={range} />
    </PageHeader>
  );
  // Every section would say so.
  if (usage.error instanceof ApiError && usage.error.status === 0) {
    return (
      <>
        {header}
        <ErrorAlert error={usage.error} retry={() => void client.refetchQueries({ type: 'active' })} />
      </>
    );
  }
  return (
    <>
      {header}
      <Stack gap="md">
        <Attention />
        {usage.error ? (
          <ErrorAlert error={usage.error} retry={usage.retry} />
        ) : (
          <>
            <Cards totals={usage.totals} previous={previous.data?.totals} range={range} />
            <Section title={`${metric.label} over time`}>
              {isEmpty && url.from === undefined ? (
                <FirstCall phrase={range.phrase} />
              ) : (
                <UsageChart
                  range={range}
                  metric={metric}
                  dimension={dimension}
                  dimensions={['team', 'key', 'model', 'provider']}
                  usage={usage}
                />
              )}
            </Section>
          </>
        )}
        <Grid gap="md">
          {!isEmpty &&
            !usage.error &&
            (['team', 'model', 'key'] as const).map((by) => (
              <Grid.Col key={by} span={{ base: 12, md: 4 }}>
                <Ranking range={range} dimension={by} metric={metric} />
              </Grid.Col>
            ))}
          <Grid.Col span={{ base: 12, md: 5 }}>
            <Budgets />
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 7 }}>
            <Providers zone={range.zone} />
          </Grid.Col>
        </Grid>
      </Stack>
    </>
  );
}

/** Before the first call: the one next thing to do. */
function FirstCall({ phrase }: { phrase: string }) {
  const [url] = useUrlState();
  const isMember = useIsMember();
  const providers = useQuery({ ...providersQuery, enabled: !isMember });
  const hasProvider = providers.data === undefined || providers.data.data.length > 0;
  return (
    <EmptyState
      title={`No calls ${phrase}`}
      action={
        <PageLink to={hasProvider ? '/keys' : '/providers'} search={sharedState(url)} underline="always">
          {hasProvider ? 'Create a key and make the first call' : 'Add a provider, to which calls go'}
        </PageLink>
      }
    >
      Calls appear here a few seconds after they end.
    </EmptyState>
  );
}

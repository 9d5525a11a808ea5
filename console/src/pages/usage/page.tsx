import { Button, Group, Select, Stack, Text } from '@mantine/core';
import { addressOf } from '../../api/address';
import { api } from '../../api/client';
import { useIsMember, useMayChange } from '../../app/session';
import { DownloadIcon } from '../../display/icons';
import { CompleteUpTo } from '../../display/complete-up-to';
import { EmptyState } from '../../display/empty-state';
import { PageLink } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { Section } from '../../display/section';
import { counted } from '../../figures/numbers';
import { shortTime } from '../../figures/times';
import { FIELDS, type FieldName } from '../../filters/fields';
import { useCallFilter } from '../../filters/use-call-filter';
import { FilterBar } from '../../filters/filter-bar';
import { DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useTimeRange } from '../../url/time-range';
import { sharedState, useUrlState } from '../../url/url-state';
import {
  type Dimension,
  dimensionOf,
  DIMENSIONS,
  metricOf,
  type UsagePage,
  type UsageRow,
  type UsageSums,
} from '../../usage/metrics';
import { UsageChart } from '../../usage/usage-chart';
import { unknownCost } from '../../usage/unknown-cost';
import { isGroupedBy, useUsage, useUsageSeries } from '../../usage/use-usage';
import { columnsFor, rowKey, SORTS, totalsOf } from './columns';

const FILTERS = Object.keys(FIELDS) as FieldName[];
const GROUPS = Object.keys(DIMENSIONS) as Dimension[];

/** What the costs do not include, beside them. */
function LeftOut({ totals }: { totals: UsageSums | null | undefined }) {
  const [url] = useUrlState();
  const mayChange = useMayChange();
  const isMember = useIsMember();
  const calls = totals?.unpriced_calls ?? 0;
  const unknown = totals ? unknownCost(totals) : null;
  return (
    <>
      {unknown !== null && (
        <Text size="sm" mb="xs">
          Costs leave out {unknown}. The provider may have billed what was not read, such as the rest of a
          stream that broke off.
        </Text>
      )}
      {calls > 0 && (
        <Text size="sm" mb="xs">
          Costs leave out {counted(calls, 'call')} without a price.{' '}
          {!isMember && (
            <PageLink to="/prices" search={sharedState(url)} underline="always">
              {mayChange ? 'Set prices' : 'See prices'}
            </PageLink>
          )}
          {mayChange && (
            <>
              , then{' '}
              <PageLink to="/prices" search={{ ...sharedState(url), reprice: '1' }} underline="always">
                reprice
              </PageLink>{' '}
              calls that are older than 7 days.
            </>
          )}
        </Text>
      )}
    </>
  );
}

export default function Usage() {
  const [url, setUrl] = useUrlState();
  const range = useTimeRange('30d');
  const metric = metricOf(url.metric);
  // A filter leaves one group of its own kind.
  const by = dimensionOf(url.by, url.key !== undefined ? 'model' : url.team !== undefined ? 'key' : 'team');
  const then = url.then === undefined ? undefined : dimensionOf(url.then, by);
  const dimensions = then === undefined || then === by ? [by] : [by, then];
  const filter = useCallFilter(FILTERS);
  const sortedBy = url.sort ?? metric.id;
  const usage = useUsageSeries(range, by, metric, filter);
  const isEmpty = usage.totals?.calls === 0;
  const question = {
    ...filter,
    tz: range.zone,
    group_by: dimensions.join(),
    sort: SORTS[sortedBy] ?? metric.id,
  };
  const table = usePages<UsageRow, UsagePage>(
    ['usage', question, range.query],
    (cursor, signal) =>
      api.get('/admin/v1/usage', { query: { ...question, ...range.query, limit: 50, cursor }, signal }),
    { keeps: (key) => isGroupedBy(key, question.group_by) },
  );
  const previous = useUsage({ ...question, ...range.previousQuery, limit: 500 });
  return (
    <>
      <PageHeader title="Usage" description={<CompleteUpTo asOf={usage.asOf} error={usage.error} />}>
        <TimeRangePicker range={range} />
      </PageHeader>
      <FilterBar fields={FILTERS} range={range} />
      <Stack gap="md">
        <Section title={`${metric.label} over time`}>
          <UsageChart
            range={range}
            metric={metric}
            dimension={by}
            dimensions={GROUPS}
            usage={usage}
            height={340}
          />
        </Section>
        {!isEmpty && (
          <Section
            title={`Usage by ${dimensions.map((dimension) => DIMENSIONS[dimension].toLowerCase()).join(' and ')}`}
            actions={
              <Group gap="xs">
                <Select
                  size="xs"
                  w={170}
                  aria-label="Second grouping"
                  value={then === undefined || then === by ? '' : then}
                  onChange={(value) => setUrl({ then: value === '' || value === null ? undefined : value })}
                  allowDeselect={false}
                  data={[
                    { value: '', label: 'No second grouping' },
                    ...GROUPS.filter((dimension) => dimension !== by).map((dimension) => ({
                      value: dimension,
                      label: `Then by ${DIMENSIONS[dimension].toLowerCase()}`,
                    })),
                  ]}
                />
                <Button
                  component="a"
                  href={addressOf('/admin/v1/usage/export', { ...question, ...range.query })}
                  download
                  size="xs"
                  variant="default"
                  leftSection={<DownloadIcon size={14} />}
                  title="All groups of this filter and time range, for spreadsheets"
                >
                  CSV
                </Button>
              </Group>
            }
          >
            <Text size="xs" c="dimmed" mb="xs">
              Changes compare with {shortTime(range.previous.from, range.zone)} –{' '}
              {shortTime(range.previous.to, range.zone)}.
            </Text>
            <LeftOut totals={table.first?.totals} />
            <DataTable
              label="Usage by group"
              dense
              columns={columnsFor(dimensions, previous.data, metric, table.first?.totals)}
              rows={table.rows}
              rowId={(row) => rowKey(row, dimensions)}
              sort={{ id: sortedBy, desc: true }}
              // Always the largest first: a second click leads back to the order of the chart.
              onSort={(sort) => setUrl({ sort: sort?.desc ? sort.id : undefined }, { replace: true })}
              error={table.error}
              retry={() => void table.refetch()}
              stale={table.isPlaceholderData}
              hasMore={table.hasNextPage}
              loadMore={() => void table.fetchNextPage()}
              loadingMore={table.isFetchingNextPage}
              totals={totalsOf(table.first?.totals, dimensions)}
              empty={
                <EmptyState title="No calls in this time range">
                  Choose a longer range, or remove a filter.
                </EmptyState>
              }
            />
          </Section>
        )}
      </Stack>
    </>
  );
}

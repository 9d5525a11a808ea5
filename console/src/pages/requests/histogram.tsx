import { ChartPanel } from '../../charts/chart-panel';
import { isNotFound } from '../../api/client';
import { ErrorAlert } from '../../display/error-alert';
import { PageLink } from '../../display/links';
import { Section } from '../../display/section';
import { compactTick, count, counted } from '../../figures/numbers';
import type { CallFilter } from '../../filters/fields';
import type { TimeRange } from '../../url/time-range';
import { useUrlState } from '../../url/url-state';
import { perInterval } from '../../usage/metrics';
import { periodsOf, useUsage } from '../../usage/use-usage';

/** Calls over time, failed ones in red on top. Dragging narrows the range of the list. */
export function Histogram({ range, filter, live }: { range: TimeRange; filter: CallFilter; live: boolean }) {
  const [, setUrl] = useUrlState();
  const { interval, zone } = range;
  const usage = useUsage(
    { ...filter, ...range.query, tz: zone, group_by: interval, limit: 500 },
    true,
    live ? 5_000 : undefined,
  );
  const periods = periodsOf(range);
  const byPeriod = new Map(usage.data?.data.map((row) => [row[interval], row]));
  const totals = usage.data?.totals;
  const figures = periods.map(({ name }) => {
    const { calls = 0, errors = 0 } = byPeriod.get(name) ?? {};
    return { good: calls - errors, errors };
  });
  // The list below says that there is none, or that nothing has the name or ID of the filter.
  if (totals?.calls === 0 || isNotFound(usage.error)) return null;
  return (
    <Section title={totals ? <Title calls={totals.calls} errors={totals.errors} /> : 'Calls over time'}>
      {usage.error !== null ? (
        <ErrorAlert error={usage.error} retry={() => void usage.refetch()} />
      ) : (
        <ChartPanel
          label="Calls over time"
          height={120}
          loading={usage.data === undefined}
          periods={periods}
          series={[
            { id: 'good', label: 'Succeeded', color: 'indigo.4', values: figures.map(({ good }) => good) },
            { id: 'errors', label: 'Failed', color: 'red.7', values: figures.map(({ errors }) => errors) },
          ]}
          format={count}
          unit={perInterval('Calls', interval)}
          formatAxis={compactTick}
          onPick={(id, { start, end }) =>
            setUrl({
              range: undefined,
              from: start.toISOString(),
              to: end.toISOString(),
              failed: id === 'errors' ? 'true' : 'false',
            })
          }
          onZoom={(from, to) => setUrl({ range: undefined, from: from.toISOString(), to: to.toISOString() })}
        />
      )}
    </Section>
  );
}

/** How many calls there are, and a link to those that failed. */
function Title({ calls, errors }: { calls: number; errors: number }) {
  const [url] = useUrlState();
  const failed = errors === 0 ? 'none failed' : `${count(errors)} failed`;
  return (
    <>
      {counted(calls, 'call')},{' '}
      {errors === 0 || url.failed === 'true' ? (
        failed
      ) : (
        <PageLink
          to="/requests"
          search={{ ...url, id: undefined, failed: 'true' }}
          inherit
          underline="always"
        >
          {failed}
        </PageLink>
      )}
    </>
  );
}

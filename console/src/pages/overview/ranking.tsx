import { BarList } from '../../display/bar-list';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { Section } from '../../display/section';
import type { TimeRange } from '../../url/time-range';
import { memberOf, sharedState, useUrlState } from '../../url/url-state';
import { groupLabel, groupValue, type Metric, type UsageRow } from '../../usage/metrics';
import { GroupName } from '../../usage/group-name';
import { UnknownCost } from '../../usage/unknown-cost';
import { useUsage } from '../../usage/use-usage';

import classes from './ranking.module.css';

const TITLES = { team: 'Top teams', model: 'Top models', key: 'Top keys' };
const SHOWN = 6;

/** The largest groups by the metric of the chart; each leads to its usage. */
export function Ranking({
  range,
  dimension,
  metric,
}: {
  range: TimeRange;
  dimension: 'team' | 'model' | 'key';
  metric: Metric;
}) {
  const [url] = useUrlState();
  const query = useUsage({ ...range.query, tz: range.zone, group_by: dimension, sort: metric.id, limit: 50 });
  const leavesOut = (row: UsageRow) => metric.id === 'cost' && row.unpriced_calls + row.unknown_calls > 0;
  const groups = query.data?.data.filter((row) => metric.of(row) > 0 || leavesOut(row)).slice(0, SHOWN);
  const largest = Math.max(1, ...(groups ?? []).map((row) => metric.of(row)));
  const search = { ...sharedState(url), metric: metric.id === 'cost' ? undefined : metric.id };
  return (
    <Section
      title={`${TITLES[dimension]} by ${metric.label.toLowerCase()}`}
      h="100%"
      actions={
        <PageLink to="/usage" search={{ ...search, by: dimension }} size="sm">
          All {dimension}s
        </PageLink>
      }
    >
      {query.error !== null && <ErrorAlert error={query.error} retry={() => void query.refetch()} />}
      {groups === undefined && query.error === null && <LoadingRows rows={SHOWN} height={28} />}
      {groups?.length === 0 && <EmptyState title={`Nothing to rank by ${metric.label.toLowerCase()}`} />}
      {groups !== undefined && groups.length > 0 && (
        <BarList
          label={TITLES[dimension]}
          items={groups.map((row) => {
            const value = groupValue(row, dimension);
            const label = groupLabel(row, dimension);
            return {
              id: value ?? 'none',
              label:
                value === undefined ? (
                  label
                ) : (
                  <PageLink
                    to="/usage"
                    search={{ ...search, ...memberOf(dimension, value) }}
                    c="inherit"
                    size="sm"
                    title={label}
                    display="block"
                    className={classes.name}
                  >
                    <GroupName row={row} dimension={dimension} />
                  </PageLink>
                ),
              value: metric.isKnown?.(row) === false ? '–' : metric.format(metric.of(row)),
              note: leavesOut(row) ? <UnknownCost sums={row} /> : undefined,
              share: metric.of(row) / largest,
            };
          })}
        />
      )}
    </Section>
  );
}

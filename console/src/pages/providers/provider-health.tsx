import { useQuery } from '@tanstack/react-query';
import { attentionQuery } from '../../api/load-all';
import { StatusBadge } from '../../display/status-badge';
import { timeRangeOf } from '../../url/time-range';
import { useUsage } from '../../usage/use-usage';
import { failingOf } from './provider';

/** A provider that does not fail is not called healthy from this part of failed calls on. */
const ERRORS = 0.2;
/** Fewer calls say nothing: as many as the alert needs. */
const LEAST_CALLS = 5;

/** How the providers responded in the last hour, whatever the range of the page. */
export function useLastHour(zone: string) {
  const hour = timeRangeOf({ range: '1h' }, '1h', zone, new Date());
  return useUsage({ ...hour.query, group_by: 'provider', limit: 500 });
}

/**
 * Whether calls go to a provider, and whether they succeed. It is failing by the rule of the alert `provider.failing`, which
 * the gateway applies; the calls of the last hour, errors of clients among them, decide about the rest.
 */
export function ProviderHealth({
  name,
  enabled,
  lastHour,
}: {
  name: string;
  enabled: boolean;
  lastHour: { calls: number; errors: number } | undefined;
}) {
  const attention = useQuery(attentionQuery).data;
  if (!enabled) return <StatusBadge tone="neutral">Disabled</StatusBadge>;
  if (failingOf(attention, { name, enabled }) !== undefined)
    return <StatusBadge tone="bad">Failing</StatusBadge>;
  if (lastHour === undefined || lastHour.calls === 0)
    return <StatusBadge tone="neutral">No calls</StatusBadge>;
  if (lastHour.errors / lastHour.calls < ERRORS) return <StatusBadge tone="good">Healthy</StatusBadge>;
  if (lastHour.calls < LEAST_CALLS) return <StatusBadge tone="neutral">Few calls</StatusBadge>;
  return <StatusBadge tone="warning">Errors</StatusBadge>;
}

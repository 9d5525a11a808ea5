import { StatusBadge } from '../../display/status-badge';
import { timeRangeOf } from '../../url/time-range';
import { useUsage } from '../../usage/use-usage';

/** From this part of failed calls on, a provider is shown as failing. */
const FAILING = 0.2;

/** How the providers responded in the last hour, whatever the range of the page. */
export function useLastHour(zone: string) {
  const hour = timeRangeOf({ range: '1h' }, '1h', zone, new Date());
  return useUsage({ ...hour.query, group_by: 'provider', limit: 500 });
}

/** Whether calls go to a provider, and whether those of the last hour succeeded. */
export function ProviderHealth({
  enabled,
  lastHour,
}: {
  enabled: boolean;
  lastHour: { calls: number; errors: number } | undefined;
}) {
  if (!enabled) return <StatusBadge tone="neutral">Disabled</StatusBadge>;
  if (lastHour === undefined || lastHour.calls === 0)
    return <StatusBadge tone="neutral">No calls</StatusBadge>;
  if (lastHour.errors / lastHour.calls >= FAILING) return <StatusBadge tone="bad">Failing</StatusBadge>;
  return <StatusBadge tone="good">Healthy</StatusBadge>;
}

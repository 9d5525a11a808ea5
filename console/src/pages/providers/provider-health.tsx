import { StatusBadge } from '../../display/status-badge';
import type { UsageSums } from '../../usage/metrics';

/** From this part of failed calls on, a provider is shown as failing. */
const FAILING = 0.2;

/** Whether calls go to a provider, and whether they succeed. */
export function ProviderHealth({
  enabled,
  sums,
}: {
  enabled: boolean;
  sums: Pick<UsageSums, 'calls' | 'errors'> | undefined;
}) {
  if (!enabled) return <StatusBadge tone="neutral">Disabled</StatusBadge>;
  if (sums === undefined || sums.calls === 0) return <StatusBadge tone="neutral">No calls</StatusBadge>;
  if (sums.errors / sums.calls >= FAILING) return <StatusBadge tone="bad">Failing</StatusBadge>;
  return <StatusBadge tone="good">Healthy</StatusBadge>;
}

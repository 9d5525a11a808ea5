import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import type { Route } from './route';

/** Whether a target gets calls, as the process that responded has seen it. */
export function TargetHealth({ target }: { target: Route['targets'][number] }) {
  if (target.resting_until === null) return null;
  return (
    <StatusBadge tone="warning">
      rests, ends <RelativeTime at={target.resting_until} />
    </StatusBadge>
  );
}

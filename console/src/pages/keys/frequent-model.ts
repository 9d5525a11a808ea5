import { useMemo } from 'react';
import { DAY_MS } from '../../url/calendar';
import { type UsageFilter, useUsage } from '../../usage/use-usage';

/** Callers choose the names of models, and an example is pasted into a shell: others are left out. */
const PLAIN = /^[A-Za-z0-9][\w.:/-]{0,127}$/;
/** While nothing was called. */
const EXAMPLE = 'gpt-5-mini';

/** The model that these calls named most often in the last 30 days; if there are none, that of all calls. */
export function useFrequentModel(calls: UsageFilter): string {
  const range = useMemo(() => {
    const to = Date.now();
    return { from: new Date(to - 30 * DAY_MS).toISOString(), to: new Date(to).toISOString() };
  }, []);
  const query = { ...range, group_by: 'model', sort: 'calls', limit: 20 } as const;
  const own = useUsage({ ...query, ...calls }).data?.data;
  const all = useUsage(query).data?.data;
  const rows = [...(own ?? []), ...(all ?? [])];
  // A name that only failed calls have is no model, or not one of a provider here.
  return (
    rows.find(({ model, ...sums }) => PLAIN.test(model ?? '') && sums.errors < sums.calls)?.model ?? EXAMPLE
  );
}

import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { providersQuery } from '../../api/load-all';
import { useIsMember } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageLink } from '../../display/links';
import { Section } from '../../display/section';
import { count, duration, percent } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { sharedState, useUrlState } from '../../url/url-state';
import type { UsageRow } from '../../usage/metrics';
import { ProviderHealth, useLastHour } from '../providers/provider-health';

interface Health {
  name: string;
  enabled: boolean;
  usage: UsageRow | undefined;
}

const COLUMNS: readonly Column<Health>[] = [
  { id: 'name', header: 'Provider', cell: ({ name }) => name },
  {
    id: 'state',
    header: 'State',
    cell: ({ name, enabled, usage }) => <ProviderHealth name={name} enabled={enabled} lastHour={usage} />,
  },
  { id: 'calls', header: 'Calls', align: 'right', cell: ({ usage }) => count(usage?.calls ?? 0) },
  {
    id: 'errors',
    header: 'Error rate',
    align: 'right',
    cell: ({ usage }) => (usage === undefined ? '–' : percent(usage.errors, usage.calls)),
  },
  { id: 'p95', header: 'p95 duration', align: 'right', cell: ({ usage }) => duration(usage?.p95_ms) },
];

/** How the providers did in the last hour, whatever the range of the page. */
export default function Providers({ zone }: { zone: string }) {
  const [url] = useUrlState();
  const isMember = useIsMember();
  const usage = useLastHour(zone);
  const providers = useQuery({ ...providersQuery, enabled: !isMember });
  const rows = useMemo(() => {
    const called = usage.data?.data;
    if (called === undefined) return undefined;
    // Members do not see the list of providers, only their own calls.
    if (isMember) return called.map((row) => ({ name: row.provider ?? '–', enabled: true, usage: row }));
    return providers.data?.data.map(({ name, enabled }) => ({
      name,
      enabled,
      usage: called.find(({ provider }) => provider === name),
    }));
  }, [providers.data, usage.data, isMember]);
  return (
    <Section
      title="Providers in the last hour"
      h="100%"
      actions={
        !isMember && (
          <PageLink to="/providers" search={sharedState(url)} size="sm">
            All providers
          </PageLink>
        )
      }
    >
      <DataTable
        label="Providers in the last hour"
        columns={COLUMNS}
        rows={rows}
        rowId={({ name }) => name}
        error={providers.error ?? usage.error}
        retry={() => void Promise.all([providers.refetch(), usage.refetch()])}
        empty={
          isMember ? (
            <EmptyState title="No calls in the last hour">
              Calls appear here a few seconds after they end.
            </EmptyState>
          ) : (
            <EmptyState
              title="No provider yet"
              action={
                <PageLink to="/providers" search={sharedState(url)} underline="always">
                  Add a provider
                </PageLink>
              }
            >
              Calls get 503 until there is one.
            </EmptyState>
          )
        }
      />
    </Section>
  );
}

import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { duration } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { useUrlState } from '../../url/url-state';
import { callersOf, type Policy, stateOf } from './policy';
import { PolicyDrawer } from './policy-drawer';
import { PolicyForm } from './policy-form';

const COLUMNS: Column<Policy>[] = [
  {
    id: 'name',
    header: 'Policy',
    cell: ({ name, url }) => (
      <>
        <Text span fw={600} size="sm">
          {name}
        </Text>
        <Text c="dimmed" size="xs" component="span" display="block">
          {url}
        </Text>
      </>
    ),
  },
  {
    id: 'state',
    header: 'State',
    cell: (policy) => <StatusBadge tone={stateOf(policy).tone}>{stateOf(policy).label}</StatusBadge>,
  },
  { id: 'callers', header: 'Calls of', cell: callersOf },
  { id: 'models', header: 'Models', cell: ({ applies_to: { models } }) => models?.join(', ') ?? 'all' },
  { id: 'send', header: 'Gets', cell: ({ send }) => send },
  { id: 'failure', header: 'On failure', cell: ({ on_failure }) => on_failure },
  {
    id: 'timeout',
    header: 'Timeout',
    align: 'right',
    cell: ({ timeout_ms }) => duration(timeout_ms),
  },
];

export default function Policies() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const policies = useQuery({
    queryKey: ['policies'],
    queryFn: ({ signal }) => api.get('/admin/v1/policies', { signal }),
  });
  const rows = policies.data?.data;
  const create = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Create policy</Button>;
  return (
    <>
      <PageHeader
        title="Policies"
        description="URLs that are asked whether a call is forwarded, in this order."
      >
        {rows?.length !== 0 && create}
      </PageHeader>
      <DataTable
        label="Policies"
        columns={COLUMNS}
        rows={rows}
        rowId={({ id }) => id}
        error={policies.error}
        retry={() => void policies.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        empty={
          <EmptyState title="No policy is asked" action={create}>
            A policy is a filter of your own, for card numbers or countries: it gets each call before it is
            forwarded, and allows or rejects it.
          </EmptyState>
        }
      />
      <PolicyDrawer
        shown={rows?.find(({ id }) => id === url.open)}
        onClose={() => setUrl({ open: undefined })}
      />
      {mayChange && url.new === '1' && (
        <PolicyForm
          onClose={() => setUrl({ new: undefined })}
          onSaved={({ id }) => setUrl({ new: undefined, open: id })}
        />
      )}
    </>
  );
}

import { Button, Text } from '@mantine/core';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { count } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { useUrlState } from '../../url/url-state';
import { PRESETS, stateOf, type Trust } from './trust';
import { TrustDrawer } from './trust-drawer';
import { TrustForm } from './trust-form';

const REFRESH_MS = 10_000;

const COLUMNS: Column<Trust>[] = [
  {
    id: 'name',
    header: 'Trust',
    cell: ({ name, preset }) => (
      <>
        <Text span fw={600} size="sm">
          {name}
        </Text>
        <Text c="dimmed" size="xs" component="span" display="block">
          {PRESETS[preset].label}
        </Text>
      </>
    ),
  },
  { id: 'key', header: 'Key', cell: ({ key }) => key },
  {
    id: 'state',
    header: 'State',
    cell: (trust) => <StatusBadge tone={stateOf(trust).tone}>{stateOf(trust).label}</StatusBadge>,
  },
  {
    id: 'live',
    header: 'Tokens now',
    align: 'right',
    cell: ({ live_tokens }) => count(live_tokens),
  },
  {
    id: 'used',
    header: 'Last used',
    oneLine: true,
    cell: ({ last_used_at }) => <RelativeTime at={last_used_at} empty="never" />,
  },
];

export default function Trusts() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const trusts = usePages<Trust>(
    ['trusts'],
    (cursor, signal) => api.get('/admin/v1/trusts', { query: { cursor }, signal }),
    { refetchInterval: REFRESH_MS },
  );
  const { rows } = trusts;
  const create = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Create trust</Button>;
  return (
    <>
      <PageHeader
        title="Trusts"
        description="CI jobs, pods and machines whose identity tokens are exchanged for short-lived tokens of a key."
      >
        {rows?.length !== 0 && create}
      </PageHeader>
      <DataTable
        label="Trusts"
        columns={COLUMNS}
        rows={rows}
        rowId={({ id }) => id}
        error={trusts.error}
        retry={() => void trusts.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        hasMore={trusts.hasNextPage}
        loadMore={() => void trusts.fetchNextPage()}
        loadingMore={trusts.isFetchingNextPage}
        empty={
          <EmptyState title="No identity token is accepted" action={create}>
            With a trust, a job of GitHub Actions or GitLab or a pod needs no stored key: the identity token
            that it has is exchanged for one that ends by itself.
          </EmptyState>
        }
      />
      <TrustDrawer id={url.open} onClose={() => setUrl({ open: undefined })} />
      {mayChange && url.new === '1' && (
        <TrustForm
          onClose={() => setUrl({ new: undefined })}
          onSaved={({ id }) => setUrl({ new: undefined, open: id })}
        />
      )}
    </>
  );
}

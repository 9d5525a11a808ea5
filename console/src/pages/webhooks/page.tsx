import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { count } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { useUrlState } from '../../url/url-state';
import { DELIVERY_TONES, type Webhook } from './webhook';
import { WebhookDrawer } from './webhook-drawer';
import { CreateWebhook } from './webhook-form';

const REFRESH_MS = 10_000;

const COLUMNS: Column<Webhook>[] = [
  {
    id: 'url',
    header: 'Webhook',
    cell: ({ url, format }) => (
      <>
        <Text span fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
          {url}
        </Text>
        <Text c="dimmed" size="xs" component="span" display="block">
          {format === 'slack' ? 'Slack' : 'JSON, signed'}
        </Text>
      </>
    ),
  },
  { id: 'events', header: 'Events', cell: ({ events }) => events.join(', ') },
  {
    id: 'last',
    header: 'Last delivery',
    cell: ({ last_delivery: last, secret_state }) =>
      secret_state === 'unreadable' ? (
        <StatusBadge tone="bad">cannot be decrypted</StatusBadge>
      ) : last === null ? (
        'none yet'
      ) : (
        <>
          <StatusBadge tone={DELIVERY_TONES[last.state]}>{last.state}</StatusBadge>{' '}
          {last.status !== null && `${last.status}, `}
          <RelativeTime at={last.attempted_at} />
        </>
      ),
  },
  { id: 'waiting', header: 'Not delivered yet', align: 'right', cell: ({ waiting }) => count(waiting) },
];

export default function Webhooks() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const webhooks = useQuery({
    queryKey: ['webhooks', 'all'],
    queryFn: ({ signal }) => api.get('/admin/v1/webhooks', { signal }),
    refetchInterval: REFRESH_MS,
  });
  const rows = webhooks.data?.data;
  const create = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Create webhook</Button>;
  return (
    <>
      <PageHeader title="Webhooks" description="Alerts are sent to these URLs.">
        {rows?.length !== 0 && create}
      </PageHeader>
      <DataTable
        label="Webhooks"
        columns={COLUMNS}
        rows={rows}
        rowId={({ id }) => id}
        error={webhooks.error}
        retry={() => void webhooks.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        empty={
          <EmptyState title="Nobody is alerted yet" action={create}>
            A webhook tells a program of yours, or a channel of Slack, when a budget runs out or a key
            expires.
          </EmptyState>
        }
      />
      <WebhookDrawer
        shown={rows?.find(({ id }) => id === url.open)}
        onClose={() => setUrl({ open: undefined })}
      />
      {mayChange && url.new === '1' && (
        <CreateWebhook
          onClose={() => setUrl({ new: undefined })}
          onCreated={(id) => setUrl({ new: undefined, open: id })}
        />
      )}
    </>
  );
}

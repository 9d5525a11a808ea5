import { Button, Code, Group, Select, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { QUERY_VALUES } from '../../api/query-values';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { LoadingRows } from '../../display/loading';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { useRemoval } from '../../forms/use-removal';
import { usePages } from '../../table/use-pages';
import { type Delivery, DELIVERY_TONES, type Webhook, WEBHOOK_LISTS } from './webhook';
import classes from './deliveries.module.css';

const STATES = QUERY_VALUES.listWebhookDeliveries.state;
const REFRESH_MS = 5_000;

/** What was sent to a webhook, newest event first, with what came back. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const [state, setState] = useState<Delivery['state'] | null>(null);
  const path = { id: webhook.id };
  const removal = useRemoval(webhook.id);
  const query = { limit: 20, ...(state !== null && { state }) };
  const deliveries = usePages<Delivery>(
    ['webhook-deliveries', webhook.id, state],
    (cursor, signal) =>
      api.get('/admin/v1/webhooks/{id}/deliveries', { path, query: { ...query, cursor } as never, signal }),
    { refetchInterval: REFRESH_MS, enabled: removal === undefined },
  );
  const client = useQueryClient();
  const replay = useMutation({
    mutationFn: (event_id: string) =>
      api.post('/admin/v1/webhooks/{id}/replay', { path, body: { event_id } }),
    onSettled: () => Promise.all(WEBHOOK_LISTS.map((list) => client.invalidateQueries({ queryKey: [list] }))),
  });
  return (
    <section aria-labelledby="deliveries">
      <Group justify="space-between" mb="xs">
        <Title order={3} size="h5" id="deliveries">
          Deliveries
        </Title>
        <Select
          size="xs"
          w={140}
          aria-label="State of the deliveries"
          placeholder="Any state"
          clearable
          clearButtonProps={{ 'aria-label': 'Any state' }}
          data={[...STATES]}
          value={state}
          onChange={(value) => setState(value as Delivery['state'] | null)}
        />
      </Group>
      <ErrorAlert error={replay.error ?? deliveries.error} />
      {deliveries.rows === undefined ? (
        deliveries.error === null && <LoadingRows rows={3} />
      ) : deliveries.rows.length === 0 ? (
        <EmptyState title={state === null ? 'Nothing was sent yet' : `No delivery is ${state}`}>
          {state === null && 'Events are kept for 30 days. Send a test to try the receiver.'}
        </EmptyState>
      ) : (
        <ul className={classes.list} aria-label="Deliveries">
          {deliveries.rows.map((delivery) => (
            <Entry
              key={delivery.event_id}
              delivery={delivery}
              replaying={replay.isPending && replay.variables === delivery.event_id}
              replay={() => replay.mutate(delivery.event_id)}
            />
          ))}
        </ul>
      )}
      {deliveries.hasNextPage && (
        <Button
          size="xs"
          variant="default"
          loading={deliveries.isFetchingNextPage}
          onClick={() => void deliveries.fetchNextPage()}
        >
          Load more
        </Button>
      )}
    </section>
  );
}

function Entry({
  delivery,
  replaying,
  replay,
}: {
  delivery: Delivery;
  replaying: boolean;
  replay: () => void;
}) {
  const [open, setOpen] = useState(false);
  const mayChange = useMayChange();
  const { type, state, created_at, attempts, attempted_at, next_attempt_at, status, message } = delivery;
  return (
    <li>
      <Group justify="space-between" gap="xs" align="flex-start">
        <Stack gap={2} style={{ minWidth: 0, flex: '1 1 220px' }}>
          <Group gap="xs">
            <Text size="sm" fw={600}>
              {type}
            </Text>
            <StatusBadge tone={DELIVERY_TONES[state]}>{state}</StatusBadge>
            {status !== null && <Text size="sm">{status}</Text>}
          </Group>
          <Text size="xs" c="dimmed" component="div">
            occurred <RelativeTime at={created_at} />
            {attempts > 0 && (
              <>
                {attempts === 1 ? '; 1 attempt, ' : `; ${attempts} attempts, the last `}
                <RelativeTime at={attempted_at} />
              </>
            )}
            {next_attempt_at !== null && (
              <>
                ; next <RelativeTime at={next_attempt_at} />
              </>
            )}
          </Text>
          {message !== null && <Text size="sm">{message}</Text>}
        </Stack>
        <Group gap={6}>
          <Button size="compact-xs" variant="default" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide data' : 'Data'}
          </Button>
          {mayChange && (
            <Button size="compact-xs" variant="default" loading={replaying} onClick={replay}>
              Send again
            </Button>
          )}
        </Group>
      </Group>
      {open && (
        <Code block mt={6} tabIndex={0} aria-label="Data of the event" role="region">
          {JSON.stringify(delivery.data, null, 2)}
        </Code>
      )}
    </li>
  );
}

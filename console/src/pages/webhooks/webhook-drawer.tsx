import { Alert, Button, Divider, Group, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { CheckIcon, WarningIcon } from '../../display/icons';
import { SideDrawer } from '../../display/side-drawer';
import { ExactTime } from '../../figures/figure';
import { duration } from '../../figures/numbers';
import { DialogButton } from '../../forms/dialog-button';
import { RemoveAction } from '../../forms/remove-action';
import { Deliveries } from './deliveries';
import { EVENTS, type Webhook } from './webhook';
import { EditWebhook } from './webhook-form';

/** One webhook: its events, and what was delivered. */
export function WebhookDrawer({ shown, onClose }: { shown: Webhook | undefined; onClose: () => void }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={onClose} title={shown?.url ?? 'Webhook'}>
      {shown !== undefined && <Details key={shown.id} shown={shown} onClose={onClose} />}
    </SideDrawer>
  );
}

function Details({ shown, onClose }: { shown: Webhook; onClose: () => void }) {
  const mayChange = useMayChange();
  return (
    <Stack gap="md">
      {mayChange && <Actions shown={shown} onClose={onClose} />}
      {shown.secret_state === 'unreadable' && (
        <Alert variant="outline" color="red" icon={<WarningIcon />} title="Nothing can be delivered">
          Its URL and secret were encrypted with another master key. Restore MASTER_KEY, or remove this
          webhook and create it again.
        </Alert>
      )}
      <Facts
        facts={[
          ['Format', shown.format === 'slack' ? 'message for Slack' : 'JSON, signed'],
          ['Events', shown.events.map((type) => EVENTS[type]).join('; ')],
          ['Not delivered yet', String(shown.waiting)],
          ['Created', <ExactTime at={shown.created_at} />],
          ['Changed', <ExactTime at={shown.updated_at} />],
          ['Webhook ID', <CopyableId id={shown.id} what="webhook ID" short />],
        ]}
      />
      <Divider />
      <Deliveries webhook={shown} />
    </Stack>
  );
}

function Actions({ shown, onClose }: { shown: Webhook; onClose: () => void }) {
  const path = { id: shown.id };
  const test = useMutation({
    mutationFn: () => api.post('/admin/v1/webhooks/{id}/test', { path, body: {} }),
  });
  const result = test.data;
  return (
    <>
      <Group gap="xs">
        <Button size="xs" onClick={() => test.mutate()} loading={test.isPending}>
          Send test
        </Button>
        <DialogButton label="Edit" variant="default">
          {(close) => <EditWebhook shown={shown} onClose={close} />}
        </DialogButton>
        <RemoveAction
          id={shown.id}
          what="webhook"
          name={new URL(shown.url.replace('…', '')).host}
          remove={() => api.delete('/admin/v1/webhooks/{id}', { path, shown })}
          // Not its deliveries, which are gone with it.
          lists={['webhooks']}
          onRemoved={onClose}
        >
          Nothing is sent to it any more, and the events that were not delivered yet are lost.
        </RemoveAction>
      </Group>
      <div aria-live="polite">
        <ErrorAlert error={test.error} />
        {result !== undefined && (
          <Alert
            role="status"
            variant="outline"
            color={result.ok ? 'teal' : 'red'}
            icon={result.ok ? <CheckIcon /> : <WarningIcon />}
            title={result.ok ? 'The test was accepted' : 'The test failed'}
            styles={{ title: { color: result.ok ? 'var(--postern-good)' : 'var(--postern-bad)' } }}
          >
            {result.message} {result.status === null ? '' : `Status ${result.status}, `}
            {duration(result.duration_ms)}.
          </Alert>
        )}
      </div>
    </>
  );
}

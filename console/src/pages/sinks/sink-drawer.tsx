import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useState } from 'react';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { WarningIcon } from '../../display/icons';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime, RelativeTime } from '../../figures/figure';
import { count, duration } from '../../figures/numbers';
import { DialogButton } from '../../forms/dialog-button';
import { FormModal } from '../../forms/form-modal';
import { RemoveAction } from '../../forms/remove-action';
import { useSave } from '../../forms/use-save';
import { KINDS, type Sink, SINK_LISTS, SINK_TONES } from './sink';
import { SinkForm } from './sink-form';

/** One sink: how far it is, why it does not take rows, and what can be done with it. */
export function SinkDrawer({ shown, onClose }: { shown: Sink | undefined; onClose: () => void }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={onClose} title={shown?.name ?? 'Sink'}>
      {shown !== undefined && <Details key={shown.id} shown={shown} onClose={onClose} />}
    </SideDrawer>
  );
}

function Details({ shown, onClose }: { shown: Sink; onClose: () => void }) {
  const mayChange = useMayChange();
  return (
    <Stack gap="md">
      {mayChange && <Actions shown={shown} onClose={onClose} />}
      {shown.secret_state === 'unreadable' && (
        <Alert variant="outline" color="red" icon={<WarningIcon />} title="Nothing can be sent">
          Its URL and secret were encrypted with another master key. Restore MASTER_KEY, or enter both again.
        </Alert>
      )}
      {shown.last_error !== null && (
        <Alert
          variant="outline"
          color={shown.state === 'failing' ? 'red' : 'gray'}
          icon={<WarningIcon />}
          title={shown.state === 'failing' ? 'It takes no rows' : 'Last error'}
        >
          {shown.last_error} (<RelativeTime at={shown.last_error_at} />)
        </Alert>
      )}
      <Facts
        facts={[
          ['State', <StatusBadge tone={SINK_TONES[shown.state]}>{shown.state}</StatusBadge>],
          ['Failing', shown.failing_since === null ? undefined : <RelativeTime at={shown.failing_since} />],
          ['Kind', KINDS[shown.kind].label],
          ['URL', <CopyableId id={shown.url} what="URL" />],
          ['Target', shown.target],
          ['Behind', duration(shown.lag_seconds * 1_000)],
          ['Has all rows until', <ExactTime at={shown.recorded_until} />],
          ['Rows sent', count(shown.rows_sent)],
          ['Last rows', <RelativeTime at={shown.sent_at} empty="never" />],
          ['Added', <ExactTime at={shown.created_at} />],
          ['Changed', <ExactTime at={shown.updated_at} />],
          ['Sink ID', <CopyableId id={shown.id} what="sink ID" short />],
        ]}
      />
    </Stack>
  );
}

function Actions({ shown, onClose }: { shown: Sink; onClose: () => void }) {
  const path = { id: shown.id };
  const pause = useSave(
    () => api.patch('/admin/v1/sinks/{id}', { path, body: { enabled: !shown.enabled }, shown }),
    SINK_LISTS,
  ).form;
  return (
    <>
      <Group gap="xs">
        <DialogButton label="Edit">
          {(close) => <SinkForm shown={shown} onClose={close} onSaved={close} />}
        </DialogButton>
        <Button size="xs" variant="default" onClick={pause.onSubmit} loading={pause.pending}>
          {shown.enabled ? 'Pause' : 'Resume'}
        </Button>
        <DialogButton label="Send again" variant="default">
          {(close) => <Replay shown={shown} onClose={close} />}
        </DialogButton>
        <RemoveAction
          what="sink"
          name={shown.name}
          remove={() => api.delete('/admin/v1/sinks/{id}', { path, shown })}
          lists={SINK_LISTS}
          onRemoved={onClose}
        >
          Nothing is sent to it any more. The rows that it has stay there. Days of the log are no longer kept
          for it.
        </RemoveAction>
      </Group>
      {!shown.enabled && (
        <Text size="sm" c="dimmed">
          Nothing is sent to a paused sink, and old days of the log are deleted all the same.
        </Text>
      )}
      <ErrorAlert error={pause.error} />
    </>
  );
}

/** Sends rows again from a time on. */
function Replay({ shown, onClose }: { shown: Sink; onClose: () => void }) {
  const [from, setFrom] = useState<string | null>(null);
  const { form, rejected: error } = useSave(
    () => api.post('/admin/v1/sinks/{id}/replay', { path: { id: shown.id }, body: { from: from! }, shown }),
    SINK_LISTS,
    onClose,
  );
  return (
    <FormModal
      title={`Send rows to ${shown.name} again`}
      onClose={onClose}
      action="Send again"
      {...form}
      disabled={from === null}
      size="md"
    >
      <Text size="sm">
        Rows that were recorded then or later are sent again, as far as Postgres still has them. ClickHouse
        replaces the rows that it has; a stream gets new messages, and a receiver new requests.
      </Text>
      <DateTimePicker
        label="From"
        required
        valueFormat="MMM D, YYYY HH:mm"
        maxDate={new Date()}
        value={from === null ? null : new Date(from)}
        onChange={(value) => setFrom(value === null ? null : new Date(value).toISOString())}
        error={error?.of('from')}
        data-autofocus
      />
    </FormModal>
  );
}

import { Checkbox, PasswordInput, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api/client';
import { FormModal } from '../../forms/form-modal';
import { ShownOnce } from '../../forms/shown-once';
import { useSave } from '../../forms/use-save';
import { type EventType, EVENTS, type Webhook, WEBHOOK_LISTS } from './webhook';

/** The path of the URL may be a credential: it is sent once and never shown, like a secret. */
function UrlField({
  value,
  onChange,
  error,
  present,
}: {
  value: string;
  onChange: (url: string) => void;
  error: string | undefined;
  /** What is shown of the present one. */
  present?: string;
}) {
  return (
    <PasswordInput
      label="URL"
      description={
        present === undefined
          ? 'Events are sent here with POST. It is stored encrypted, and only its host is shown later.'
          : `At present ${present}. Leave it empty to keep it.`
      }
      required={present === undefined}
      placeholder="https://alerts.example.com/postern"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value.trim())}
      error={error}
      aria-invalid={error !== undefined}
      autoComplete="off"
      spellCheck={false}
      visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the URL', tabIndex: 0 }}
      data-autofocus
    />
  );
}

function EventFields({
  value,
  onChange,
  error,
}: {
  value: readonly EventType[];
  onChange: (events: EventType[]) => void;
  error: string | undefined;
}) {
  return (
    <Checkbox.Group
      label="Events"
      value={[...value]}
      onChange={(events) => onChange(events as EventType[])}
      error={error}
    >
      <Stack gap={8} mt={6}>
        {Object.entries(EVENTS).map(([type, text]) => (
          <Checkbox key={type} value={type} label={text} description={type} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}

/** Creates a webhook and shows its secret, once. */
export function CreateWebhook({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (id: string) => void;
}) {
  const [url, setUrl] = useState('');
  const [format, setFormat] = useState<Webhook['format']>('standard');
  const [events, setEvents] = useState<EventType[]>(['budget.threshold', 'budget.exhausted']);
  const create = useSave(
    (): Promise<Webhook & { secret: string | null }> =>
      api.post('/admin/v1/webhooks', { body: { url, format, events } }),
    WEBHOOK_LISTS,
    ({ id, secret }) => {
      setUrl('');
      if (secret === null) onCreated(id);
    },
  );
  const error = create.rejected;
  if (create.data != null && create.data.secret !== null) {
    const { id, secret } = create.data;
    return (
      <ShownOnce
        secret={secret}
        what="secret"
        title="Secret of the webhook"
        lost="If it is lost, create another webhook and remove this one."
        onClose={() => onCreated(id)}
      >
        <Text size="sm">The receiver verifies with it that messages are from this gateway.</Text>
      </ShownOnce>
    );
  }
  return (
    <FormModal
      title="Create a webhook"
      onClose={onClose}
      action="Create webhook"
      {...create.form}
      disabled={url === '' || events.length === 0}
      size="md"
    >
      <UrlField value={url} onChange={setUrl} error={error?.of('url')} />
      <Select
        label="Format"
        allowDeselect={false}
        data={[
          { value: 'standard', label: 'JSON, signed (Standard Webhooks)' },
          { value: 'slack', label: 'Message for an incoming webhook of Slack' },
        ]}
        value={format}
        onChange={(value) => setFormat(value as Webhook['format'])}
        error={error?.of('format')}
      />
      <EventFields value={events} onChange={setEvents} error={error?.of('events')} />
    </FormModal>
  );
}

export function EditWebhook({ shown, onClose }: { shown: Webhook; onClose: () => void }) {
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState<EventType[]>(shown.events);
  const sorted = (types: readonly string[]) => [...types].sort().join();
  const eventsDiffer = sorted(events) !== sorted(shown.events);
  const { form, rejected: error } = useSave(
    () =>
      api.patch('/admin/v1/webhooks/{id}', {
        path: { id: shown.id },
        body: { ...(url !== '' && { url }), ...(eventsDiffer && { events }) },
        shown,
      }),
    WEBHOOK_LISTS,
    onClose,
  );
  return (
    <FormModal
      title="Edit webhook"
      onClose={onClose}
      action="Save"
      {...form}
      disabled={events.length === 0 || (url === '' && !eventsDiffer)}
      size="md"
    >
      <UrlField value={url} onChange={setUrl} error={error?.of('url')} present={shown.url} />
      <EventFields value={events} onChange={setEvents} error={error?.of('events')} />
    </FormModal>
  );
}

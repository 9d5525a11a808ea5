import { PasswordInput, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { KINDS, type Sink, SINK_LISTS } from './sink';

/** Which rows a new sink gets. */
const STARTS = [
  { value: 'all', label: 'All rows that Postgres has' },
  { value: 'today', label: 'Rows of today (UTC) and later' },
  { value: 'now', label: 'Rows from now on' },
];

function startOf(start: string): string | undefined {
  if (start === 'all') return undefined;
  const at = new Date();
  if (start === 'today') at.setUTCHours(0, 0, 0, 0);
  return at.toISOString();
}

/** Adds a sink, or changes the one that is given. The secret is sent once and never shown. */
export function SinkForm({
  shown,
  onClose,
  onSaved,
}: {
  shown?: Sink;
  onClose: () => void;
  onSaved: (sink: Sink) => void;
}) {
  const stored = { name: shown?.name ?? '', target: shown?.target ?? '' };
  const [draft, setDraft] = useState(stored);
  const [kind, setKind] = useState<Sink['kind']>(shown?.kind ?? 'clickhouse');
  const [url, setUrl] = useState('');
  const [secret, setSecret] = useState('');
  const [start, setStart] = useState('all');
  const about = KINDS[kind];
  const changes = changesOf(stored, draft);
  const { form, rejected: error } = useSave(
    (): Promise<Sink> =>
      shown === undefined
        ? api.post('/admin/v1/sinks', {
            body: {
              name: draft.name,
              kind,
              url,
              target: about.target === null ? null : draft.target,
              secret: secret === '' ? null : secret,
              from: startOf(start),
            },
          })
        : api.patch('/admin/v1/sinks/{id}', {
            path: { id: shown.id },
            body: { ...changes, ...(url !== '' && { url }), ...(secret !== '' && { secret }) },
            shown,
          }),
    SINK_LISTS,
    (sink) => {
      setSecret('');
      onSaved(sink);
    },
  );
  const hasChanges = Object.keys(changes).length > 0 || url !== '' || secret !== '';
  return (
    <FormModal
      title={shown === undefined ? 'Add a sink' : `Edit sink ${shown.name}`}
      onClose={onClose}
      action={shown === undefined ? 'Add sink' : 'Save'}
      {...form}
      disabled={draft.name === '' || (shown === undefined && url === '') || !hasChanges}
      size="md"
    >
      {shown === undefined && (
        <Select
          label="Kind"
          description="It cannot be changed later."
          allowDeselect={false}
          data={Object.entries(KINDS).map(([value, { label }]) => ({ value, label }))}
          value={kind}
          onChange={(value) => setKind(value as Sink['kind'])}
          error={error?.of('kind')}
          data-autofocus
        />
      )}
      <TextInput
        label="Name"
        description="Lower-case letters, digits and hyphens."
        required
        placeholder="warehouse"
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
        error={error?.of('name')}
        autoComplete="off"
      />
      <TextInput
        label="URL"
        description={
          shown === undefined
            ? 'Without user and password.'
            : `At present ${shown.url}. Leave it empty to keep it. Another host needs the secret again.`
        }
        required={shown === undefined}
        placeholder={about.url}
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value.trim())}
        error={error?.of('url')}
        autoComplete="off"
        spellCheck={false}
      />
      {about.target !== null && (
        <TextInput
          label="Target"
          description={about.target}
          required
          value={draft.target}
          onChange={(event) => setDraft({ ...draft, target: event.currentTarget.value.trim() })}
          error={error?.of('target')}
          autoComplete="off"
          spellCheck={false}
        />
      )}
      <PasswordInput
        label="Secret"
        description={
          shown === undefined
            ? `${about.secret} Leave it empty if the server needs none.`
            : `${about.secret} Leave it empty to keep the present one.`
        }
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
        error={error?.of('secret')}
        aria-invalid={error?.of('secret') !== undefined}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret', tabIndex: 0 }}
      />
      {shown === undefined && (
        <Select
          label="Starts with"
          allowDeselect={false}
          data={STARTS}
          value={start}
          onChange={(value) => setStart(value ?? 'all')}
          error={error?.of('from')}
        />
      )}
    </FormModal>
  );
}

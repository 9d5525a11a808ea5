import { PasswordInput, Select, Switch, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ApiError } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { PRESETS } from './presets';
import type { Provider } from './provider';

const AUTHS: { value: Provider['auth']; label: string }[] = [
  { value: 'bearer', label: 'Authorization: Bearer' },
  { value: 'x-api-key', label: 'x-api-key' },
  { value: 'api-key', label: 'api-key' },
  { value: 'x-goog-api-key', label: 'x-goog-api-key' },
];

interface Draft {
  name: string;
  url: string;
  auth: Provider['auth'];
  default: boolean;
  enabled: boolean;
  catalog: string | null;
}

const draftOf = ({ name, url, auth, default: isDefault, enabled, catalog }: Provider): Draft => ({
  name,
  url,
  auth,
  default: isDefault,
  enabled,
  catalog,
});
const NEW: Draft = { name: '', url: '', auth: 'bearer', default: false, enabled: true, catalog: null };

/** Adds a provider, or changes the one that is given. The secret is sent once and never shown. */
export function ProviderForm({
  shown,
  isFirst = false,
  onClose,
  onSaved,
}: {
  shown?: Provider;
  isFirst?: boolean;
  onClose: () => void;
  onSaved: (provider: Provider) => void;
}) {
  const stored = shown === undefined ? { ...NEW, default: isFirst } : draftOf(shown);
  const [draft, setDraft] = useState(stored);
  const [preset, setPreset] = useState<string | null>(null);
  const [secret, setSecret] = useState('');
  const client = useQueryClient();
  const changes = changesOf<Draft>(stored, draft);
  const hasChanges = Object.keys(changes).length > 0 || secret !== '';
  const save = useMutation({
    mutationFn: async (): Promise<Provider> => {
      if (shown !== undefined) {
        const { name: _, ...body } = changes;
        return api.patch('/admin/v1/providers/{name}', {
          path: { name: shown.name },
          body: { ...body, ...(secret !== '' && { secret }) },
          shown,
        });
      }
      // Without a price list of its own, the one of the URL's host applies.
      const { catalog, ...body } = draft;
      return api.post('/admin/v1/providers', {
        body: { ...body, secret: secret === '' ? null : secret, ...(catalog !== null && { catalog }) },
      });
    },
    gcTime: 0,
    onSuccess: async (provider) => {
      setSecret('');
      await Promise.all(['providers', 'audit'].map((name) => client.invalidateQueries({ queryKey: [name] })));
      onSaved(provider);
    },
  });
  const error = save.error instanceof ApiError ? save.error : undefined;
  const choose = (id: string | null) => {
    setPreset(id);
    const found = id === null ? undefined : PRESETS[id];
    if (id !== null && found !== undefined)
      setDraft({ ...draft, name: id, url: found.url ?? found.example ?? '', auth: found.auth });
  };
  const needsSecret = preset !== null && PRESETS[preset]?.needsSecret === true;
  return (
    <FormModal
      title={shown === undefined ? 'Add a provider' : `Edit provider ${shown.name}`}
      onClose={onClose}
      onSubmit={() => save.mutate()}
      action={shown === undefined ? 'Add and test' : 'Save'}
      pending={save.isPending}
      error={save.error}
      disabled={
        draft.name === '' || draft.url === '' || !hasChanges || (needsSecret && secret === '' && !shown)
      }
      size="md"
    >
      {shown === undefined && (
        <>
          <Select
            label="Preset"
            placeholder="Another provider"
            clearable
            clearButtonProps={{ 'aria-label': 'No preset' }}
            data={Object.entries(PRESETS).map(([value, { title }]) => ({ value, label: title }))}
            value={preset}
            onChange={choose}
            data-autofocus
          />
          <TextInput
            label="Name"
            description="Programs reach it under /p/<name>/. It cannot be changed later."
            required
            value={draft.name}
            onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
            error={error?.of('name')}
            autoComplete="off"
          />
        </>
      )}
      <TextInput
        label="URL"
        description="Without /v1, which programs send."
        required
        placeholder="https://api.openai.com"
        value={draft.url}
        onChange={(event) => setDraft({ ...draft, url: event.currentTarget.value.trim() })}
        error={error?.of('url')}
        spellCheck={false}
      />
      <Select
        label="How the secret is sent"
        allowDeselect={false}
        data={AUTHS}
        value={draft.auth}
        onChange={(auth) => setDraft({ ...draft, auth: auth as Provider['auth'] })}
      />
      <PasswordInput
        label={shown === undefined ? 'Secret' : 'New secret'}
        description={
          shown === undefined
            ? 'The provider’s API key. Stored encrypted and never shown again. Leave it empty if the provider needs none.'
            : 'Leave it empty to keep the present one.'
        }
        required={needsSecret}
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value.trim())}
        error={error?.of('secret')}
        autoComplete="new-password"
        spellCheck={false}
        visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret', tabIndex: 0 }}
      />
      <TextInput
        label="Price list"
        description={
          shown === undefined
            ? 'Empty: the one of the URL’s host, if there is one.'
            : 'Empty: only prices of this provider’s own name apply.'
        }
        placeholder="openai"
        value={draft.catalog ?? ''}
        onChange={(event) =>
          setDraft({ ...draft, catalog: event.currentTarget.value === '' ? null : event.currentTarget.value })
        }
        error={error?.of('catalog')}
        spellCheck={false}
      />
      <Switch
        label="Default provider: calls to /v1 go to it"
        checked={draft.default}
        onChange={(event) => setDraft({ ...draft, default: event.currentTarget.checked })}
      />
      {shown !== undefined && (
        <Switch
          label="Enabled"
          checked={draft.enabled}
          onChange={(event) => setDraft({ ...draft, enabled: event.currentTarget.checked })}
        />
      )}
    </FormModal>
  );
}

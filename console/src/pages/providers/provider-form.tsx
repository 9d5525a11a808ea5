import { Select, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { changed, filled, inputsOf, type Settings, settingsOf } from './auth';
import type { Team } from '../teams/team';
import { AuthFields } from './auth-fields';
import { PRESETS } from './presets';
import type { Provider } from './provider';

interface Draft {
  name: string;
  url: string;
  auth: Provider['auth'];
  default: boolean;
  enabled: boolean;
  catalog: string | null;
  on_disconnect: Provider['on_disconnect'];
  team: string | null;
}

const draftOf = ({
  name,
  url,
  auth,
  default: isDefault,
  enabled,
  catalog,
  on_disconnect,
  team,
}: Provider): Draft => ({
  name,
  url,
  auth,
  default: isDefault,
  enabled,
  catalog,
  on_disconnect,
  team,
});
const NEW: Draft = {
  name: '',
  url: '',
  auth: 'bearer',
  default: false,
  enabled: true,
  catalog: null,
  on_disconnect: 'cancel',
  team: null,
};

/** Adds a provider, or changes the one that is given. The secret is sent once and never shown. */
export function ProviderForm({
  shown,
  isFirst = false,
  team,
  onClose,
  onSaved,
}: {
  shown?: Provider;
  isFirst?: boolean;
  /** Name of the team that a new one is for. */
  team?: string;
  onClose: () => void;
  onSaved: (provider: Provider) => void;
}) {
  const stored =
    shown === undefined
      ? { ...NEW, default: isFirst || team !== undefined, team: team ?? null }
      : draftOf(shown);
  const teams = useQuery(teamsQuery).data?.rows ?? [];
  const [draft, setDraft] = useState(stored);
  const [preset, setPreset] = useState<string | null>(null);
  const storedSettings = settingsOf(stored.auth, shown?.auth_settings ?? null);
  const [settings, setSettings] = useState<Settings>(storedSettings);
  const [secret, setSecret] = useState('');
  const changes = changesOf<Draft>(stored, draft);
  const newSettings =
    changes.auth === undefined ? changed(draft.auth, storedSettings, settings) : filled(draft.auth, settings);
  const hasChanges = Object.keys(changes).length > 0 || newSettings !== undefined || secret !== '';
  const takesSecret = inputsOf(draft.auth, settings).secret !== null;
  const { form, rejected: error } = useSave(
    async (): Promise<Provider> => {
      if (shown !== undefined) {
        const { name: _, ...body } = changes;
        return api.patch('/admin/v1/providers/{name}', {
          path: { name: shown.name },
          body: {
            ...body,
            ...(newSettings !== undefined && { auth_settings: newSettings }),
            ...(takesSecret
              ? secret !== '' && { secret }
              : shown.secret_state !== 'none' && { secret: null }),
          },
          shown,
        });
      }
      // Without a price list of its own, the one of the URL's host applies.
      const { catalog, ...body } = draft;
      const auth_settings = filled(draft.auth, settings);
      const added = await api.post('/admin/v1/providers', {
        body: {
          ...body,
          default: draft.team === null && draft.default,
          url: body.url.replace('<region>', settings.region ?? ''),
          secret: secret === '' || !takesSecret ? null : secret,
          ...(auth_settings !== undefined && { auth_settings }),
          ...(catalog !== null && { catalog }),
        },
      });
      const owner = teams.find(({ name }) => name === draft.team);
      if (owner !== undefined) await admit(owner, added.name, draft.default);
      return added;
    },
    ['providers', 'teams', 'audit'],
    (provider) => {
      setSecret('');
      onSaved(provider);
    },
  );
  const choose = (id: string | null) => {
    setPreset(id);
    const found = id === null ? undefined : PRESETS[id];
    if (id !== null && found !== undefined) {
      setSettings(settingsOf(found.auth, { ...found.authSettings }));
      setDraft({
        ...draft,
        name: draft.team === null ? id : accountName(id, draft.team),
        url: found.url ?? found.example ?? '',
        auth: found.auth,
        on_disconnect: found.onDisconnect ?? 'cancel',
      });
    }
  };
  const needsSecret = preset !== null && PRESETS[preset]?.needsSecret === true && takesSecret;
  return (
    <FormModal
      title={shown === undefined ? 'Add a provider' : `Edit provider ${shown.name}`}
      onClose={onClose}
      action={shown === undefined ? 'Add and test' : 'Save'}
      {...form}
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
      <AuthFields
        auth={draft.auth}
        settings={settings}
        secret={secret}
        isStored={shown !== undefined}
        needsSecret={needsSecret}
        error={error}
        onChange={(change) => {
          if (change.auth !== undefined) setDraft({ ...draft, auth: change.auth });
          if (change.settings !== undefined) setSettings(change.settings);
          if (change.secret !== undefined) setSecret(change.secret);
        }}
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
      <Select
        label="When a client disconnects"
        description="Some providers go on, and bill the whole response."
        allowDeselect={false}
        data={[
          { value: 'cancel', label: 'Cancel the call' },
          { value: 'finish', label: 'Finish it: read the response to its end, so that its cost is known' },
        ]}
        value={draft.on_disconnect}
        onChange={(value) => setDraft({ ...draft, on_disconnect: value as Draft['on_disconnect'] })}
      />
      {(teams.length > 0 || draft.team !== null) && (
        <Select
          label="Team"
          description="Whose keys may use it. It takes its files and batches with it."
          allowDeselect={false}
          searchable
          data={[
            { value: '', label: 'All teams' },
            ...[...new Set([...teams.map(({ name }) => name), draft.team ?? ''])].filter(Boolean),
          ]}
          value={draft.team ?? ''}
          onChange={(name) => setDraft({ ...draft, team: name || null })}
          error={error?.of('team')}
        />
      )}
      {(shown === undefined || draft.team === null) && (
        <Switch
          label={
            draft.team === null
              ? 'Default provider: calls to /v1 go to it'
              : 'Default of the team: its calls to /v1 go to it'
          }
          checked={draft.default}
          onChange={(event) => setDraft({ ...draft, default: event.currentTarget.checked })}
        />
      )}
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

/** Lets a team use a new provider of its own. */
async function admit(owner: Team, name: string, isDefault: boolean): Promise<void> {
  const body = {
    ...(isDefault && { default_provider: name }),
    ...(owner.providers !== null && { providers: [...new Set([...owner.providers, name])] }),
  };
  if (Object.keys(body).length > 0)
    await api.patch('/admin/v1/teams/{id}', { path: { id: owner.id }, body, shown: owner });
}

/** The name that `postern providers add --team` gives. */
function accountName(preset: string, team: string): string {
  return `${preset}-${team.toLowerCase().replace(/[^a-z0-9_-]+/g, '-')}`.slice(0, 63);
}

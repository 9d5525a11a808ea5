import { NumberInput, PasswordInput, Select, SimpleGrid, TagsInput, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import classes from '../../forms/whole-pills.module.css';
import { ON_FAILURE, type Policy, POLICY_LISTS, SENT } from './policy';

type Draft = Pick<Policy, 'name' | 'send' | 'timeout_ms' | 'on_failure' | 'cache_seconds' | 'order'>;

const NEW: Draft = {
  name: '',
  send: 'head',
  timeout_ms: 300,
  on_failure: 'reject',
  cache_seconds: 0,
  order: 0,
};

function draftOf({ name, send, timeout_ms, on_failure, cache_seconds, order }: Policy): Draft {
  return { name, send, timeout_ms, on_failure, cache_seconds, order };
}

interface Scope {
  teams: string[];
  keys: string[];
  models: string[];
}

function scopeOf(policy: Policy | undefined): Scope {
  const { teams, keys, models } = policy?.applies_to ?? { teams: null, keys: null, models: null };
  return { teams: teams ?? [], keys: keys ?? [], models: models ?? [] };
}

/** An empty list limits nothing. */
function scopeMember({ teams, keys, models }: Scope) {
  const given = (names: string[]) => (names.length === 0 ? null : names);
  return { teams: given(teams), keys: given(keys), models: given(models) };
}

const options = (labels: Record<string, string>) =>
  Object.entries(labels).map(([value, label]) => ({ value, label }));

/** Creates a policy, or changes the one that is given. Its secret is sent once and never shown. */
export function PolicyForm({
  shown,
  onClose,
  onSaved,
}: {
  shown?: Policy;
  onClose: () => void;
  onSaved: (policy: Policy) => void;
}) {
  const isNew = shown === undefined;
  const stored = isNew ? NEW : draftOf(shown);
  const [draft, setDraft] = useState(stored);
  const [scope, setScope] = useState(scopeOf(shown));
  const [url, setUrl] = useState('');
  const [secret, setSecret] = useState('');
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const changes = {
    ...changesOf(stored, draft),
    ...(JSON.stringify(scope) !== JSON.stringify(scopeOf(shown)) && { applies_to: scopeMember(scope) }),
    ...(url !== '' && { url }),
    ...(secret !== '' && { secret }),
  };
  const { form, rejected: error } = useSave(
    (): Promise<Policy> =>
      isNew
        ? api.post('/admin/v1/policies', { body: { ...draft, ...changes, url, secret } })
        : api.patch('/admin/v1/policies/{id}', { path: { id: shown.id }, body: changes, shown }),
    POLICY_LISTS,
    (policy) => {
      setSecret('');
      onSaved(policy);
    },
  );
  return (
    <FormModal
      title={isNew ? 'Create a policy' : `Edit policy ${shown.name}`}
      onClose={onClose}
      action={isNew ? 'Create policy' : 'Save'}
      {...form}
      disabled={
        draft.name === '' || (isNew && (url === '' || secret === '')) || Object.keys(changes).length === 0
      }
    >
      <TextInput
        label="Name"
        description="Lower-case letters, digits and hyphens. Rejections name it."
        required
        placeholder="dlp"
        value={draft.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        error={error?.of('name')}
        autoComplete="off"
        data-autofocus
      />
      <PasswordInput
        label="URL"
        description={
          isNew
            ? 'It is asked here with POST. It is stored encrypted, and only its host is shown later.'
            : `At present ${shown.url}. Leave it empty to keep it.`
        }
        required={isNew}
        placeholder="https://filter.example.com/decide"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value.trim())}
        error={error?.of('url')}
        aria-invalid={error?.of('url') !== undefined}
        autoComplete="off"
        spellCheck={false}
        visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the URL', tabIndex: 0 }}
      />
      <PasswordInput
        label="Secret"
        description={`It signs requests: whsec_ and the base64 of 24 to 64 bytes.${isNew ? '' : ' Leave it empty to keep the present one.'}`}
        required={isNew}
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value.trim())}
        error={error?.of('secret')}
        aria-invalid={error?.of('secret') !== undefined}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret', tabIndex: 0 }}
      />
      <ScopeFields value={scope} onChange={setScope} error={(field) => error?.of(`applies_to.${field}`)} />
      <Select
        label="Gets"
        allowDeselect={false}
        data={options(SENT)}
        value={draft.send}
        onChange={(value) => set({ send: value as Policy['send'] })}
        error={error?.of('send')}
      />
      <Select
        label="If it does not decide"
        description="Also for a body that makes it slow or fail."
        allowDeselect={false}
        data={options(ON_FAILURE)}
        value={draft.on_failure}
        onChange={(value) => set({ on_failure: value as Policy['on_failure'] })}
        error={error?.of('on_failure')}
      />
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <Whole
          label="Timeout, ms"
          min={10}
          value={draft.timeout_ms}
          onChange={(timeout_ms) => set({ timeout_ms })}
          error={error?.of('timeout_ms')}
        />
        <Whole
          label="Cache, s"
          min={0}
          value={draft.cache_seconds}
          onChange={(cache_seconds) => set({ cache_seconds })}
          error={error?.of('cache_seconds')}
        />
        <Whole
          label="Order"
          min={-1_000}
          value={draft.order}
          onChange={(order) => set({ order })}
          error={error?.of('order')}
        />
      </SimpleGrid>
    </FormModal>
  );
}

function Whole({
  label,
  min,
  value,
  onChange,
  error,
}: {
  label: string;
  min: number;
  value: number;
  onChange: (value: number) => void;
  error: string | undefined;
}) {
  return (
    <NumberInput
      label={label}
      min={min}
      allowDecimal={false}
      value={value}
      onChange={(next) => onChange(Number(next))}
      error={error}
    />
  );
}

const SHOWN = 50;

/** About which calls it is asked. Teams and keys that exist are suggested. */
function ScopeFields({
  value,
  onChange,
  error,
}: {
  value: Scope;
  onChange: (scope: Scope) => void;
  error: (field: keyof Scope) => string | undefined;
}) {
  const [team, setTeam] = useState('');
  const [key, setKey] = useState('');
  const suggestion = { placeholderData: keepPreviousData, staleTime: 60_000 };
  const teams = useQuery({
    queryKey: ['teams', 'of-policies', team],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/teams', { query: { search: team || undefined, limit: SHOWN }, signal }),
    ...suggestion,
  });
  const search = key.split('/').at(-1)?.trim() || undefined;
  const keys = useQuery({
    queryKey: ['keys', 'of-policies', search],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/keys', { query: { search, sort: 'name', status: 'active', limit: SHOWN }, signal }),
    ...suggestion,
  });
  const names = (keys.data?.data ?? []).map(({ team, name }) => `${team}/${name}`);
  const common = { classNames: { pill: classes.pill }, acceptValueOnBlur: true, splitChars: [] };
  return (
    <>
      <TagsInput
        {...common}
        label="Calls of these teams"
        placeholder={value.teams.length + value.keys.length === 0 ? 'all' : undefined}
        data={(teams.data?.data ?? []).map(({ name }) => name)}
        filter={({ options }) => options}
        searchValue={team}
        onSearchChange={setTeam}
        value={value.teams}
        onChange={(teams) => onChange({ ...value, teams })}
        error={error('teams')}
      />
      <TagsInput
        {...common}
        label="Calls of these keys as well"
        description="team/name"
        data={[...new Set(names)]}
        filter={({ options }) => options}
        searchValue={key}
        onSearchChange={setKey}
        value={value.keys}
        onChange={(keys) => onChange({ ...value, keys })}
        error={error('keys')}
      />
      <TagsInput
        {...common}
        label="Only calls to these models"
        description="* stands for any characters."
        placeholder={value.models.length === 0 ? 'all' : undefined}
        splitChars={[',', ' ']}
        value={value.models}
        onChange={(models) => onChange({ ...value, models })}
        error={error('models')}
      />
    </>
  );
}

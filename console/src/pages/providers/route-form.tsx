import { Checkbox, NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import {
  badLine,
  DIALECTS,
  modelsOf,
  modelsText,
  RETRY_CAUSES,
  type RetryCause,
  type Route,
  STRATEGIES,
  type TargetDraft,
} from './route';
import { TargetFields } from './target-fields';

type Settings = Pick<Route, 'strategy' | 'retry_on' | 'max_attempts' | 'dialect' | 'default'>;

const NEW: Settings = {
  strategy: 'order',
  retry_on: ['connect', 'refused'],
  max_attempts: 2,
  dialect: 'any',
  default: false,
};
const MAX_ATTEMPTS = 10;

const choices = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels).map(([value, label]) => ({ value, label }));

/** Adds a route, or changes the one that is given. */
export function RouteForm({
  shown,
  onClose,
  onSaved,
}: {
  shown?: Route;
  onClose: () => void;
  onSaved: (route: Route) => void;
}) {
  const { strategy, retry_on, max_attempts, dialect, default: isDefault } = shown ?? NEW;
  const stored = {
    ...{ strategy, retry_on, max_attempts, dialect, default: isDefault },
    targets: shown?.targets.map(({ provider, models }) => ({ provider, models })) ?? [],
  };
  const [name, setName] = useState('');
  const [draft, setDraft] = useState<Settings>({
    strategy,
    retry_on,
    max_attempts,
    dialect,
    default: isDefault,
  });
  const [targets, setTargets] = useState<TargetDraft[]>(
    shown?.targets.map(({ provider, models }, id) => ({ id, provider, models: modelsText(models) })) ?? [
      { id: 0, provider: '', models: '' },
      { id: 1, provider: '', models: '' },
    ],
  );
  const wanted = {
    ...draft,
    targets: targets.map(({ provider, models }) => ({ provider, models: modelsOf(models) })),
  };
  const changes = changesOf(stored, wanted);
  const { form, rejected: error } = useSave(
    () =>
      shown === undefined
        ? api.post('/admin/v1/routes', { body: { name, ...wanted } })
        : api.patch('/admin/v1/routes/{name}', { path: { name: shown.name }, body: changes, shown }),
    ['routes', 'audit'],
    onSaved,
  );
  const isComplete =
    targets.length > 0 &&
    targets.every(({ provider, models }) => provider !== '' && badLine(models) === undefined) &&
    (shown !== undefined || name !== '');
  const retryOn = (cause: RetryCause, isOn: boolean) =>
    setDraft({
      ...draft,
      retry_on: (Object.keys(RETRY_CAUSES) as RetryCause[]).filter((one) =>
        one === cause ? isOn : draft.retry_on.includes(one),
      ),
    });
  return (
    <FormModal
      title={shown === undefined ? 'Add a route' : `Edit route ${shown.name}`}
      onClose={onClose}
      action={shown === undefined ? 'Add route' : 'Save'}
      {...form}
      disabled={!isComplete || Object.keys(changes).length === 0}
      size="md"
    >
      {shown === undefined && (
        <TextInput
          label="Name"
          description="Programs reach it under /p/<name>/, like a provider. It cannot be changed later."
          required
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={error?.of('name')}
          autoComplete="off"
          data-autofocus
        />
      )}
      <TargetFields targets={targets} onChange={setTargets} error={error} />
      <Select
        label="How a target is chosen"
        allowDeselect={false}
        data={choices(STRATEGIES)}
        value={draft.strategy}
        onChange={(value) => setDraft({ ...draft, strategy: value as Route['strategy'] })}
        error={error?.of('strategy')}
      />
      <Checkbox.Group
        label="Send a call to another target when"
        value={draft.retry_on}
        error={error?.of('retry_on')}
      >
        <Stack gap={6} mt={6}>
          {Object.entries(RETRY_CAUSES).map(([cause, label]) => (
            <Checkbox
              key={cause}
              value={cause}
              label={label}
              onChange={(event) => retryOn(cause as RetryCause, event.currentTarget.checked)}
            />
          ))}
        </Stack>
      </Checkbox.Group>
      <NumberInput
        label="Attempts at most"
        min={1}
        max={MAX_ATTEMPTS}
        allowDecimal={false}
        value={draft.max_attempts}
        onChange={(value) => setDraft({ ...draft, max_attempts: Number(value) })}
        error={error?.of('max_attempts')}
      />
      <Select
        label="API of the targets"
        description="Inference calls of another API are rejected."
        allowDeselect={false}
        data={choices(DIALECTS)}
        value={draft.dialect}
        onChange={(value) => setDraft({ ...draft, dialect: value as Route['dialect'] })}
        error={error?.of('dialect')}
      />
      <Switch
        label="Default: calls to /v1 use it, unless PROVIDER_URL is set"
        checked={draft.default}
        onChange={(event) => setDraft({ ...draft, default: event.currentTarget.checked })}
      />
    </FormModal>
  );
}

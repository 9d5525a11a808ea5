import { MultiSelect, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { RemoveAction } from '../../forms/remove-action';
import { useSave } from '../../forms/use-save';
import { NO_LIMITS, type OwnLimits, ownLimitsOf } from '../../limits/limit-draft';
import { OwnLimitFields } from '../../limits/own-limit-fields';
import { GROUP_LISTS, type TeamGroup } from './group';

type GroupDraft = OwnLimits & Pick<TeamGroup, 'name' | 'note' | 'teams'>;

/** Creates a group, or changes the one that is given. */
export function GroupForm({
  shown,
  raised,
  onClose,
}: {
  shown?: TeamGroup;
  /** It was opened to raise a limit. */
  raised?: string;
  onClose: () => void;
}) {
  const stored: GroupDraft =
    shown === undefined
      ? { name: '', note: null, teams: [], ...NO_LIMITS }
      : { name: shown.name, note: shown.note, teams: shown.teams, ...ownLimitsOf(shown) };
  const [draft, setDraft] = useState(stored);
  const teams = useQuery(teamsQuery).data?.rows ?? [];
  const changes = changesOf(stored, { ...draft, teams: [...draft.teams].sort(byCodeUnit) });
  const { form, rejected: error } = useSave(
    (): Promise<TeamGroup> =>
      shown === undefined
        ? api.post('/admin/v1/groups', { body: draft })
        : api.patch('/admin/v1/groups/{id}', { path: { id: shown.id }, body: changes, shown }),
    GROUP_LISTS,
    onClose,
  );
  const elsewhere = teams.filter(
    ({ name, group }) => group !== null && group !== shown?.name && draft.teams.includes(name),
  );
  return (
    <FormModal
      title={shown === undefined ? 'Create a group' : `Edit group ${shown.name}`}
      onClose={onClose}
      action={shown === undefined ? 'Create group' : 'Save'}
      {...form}
      disabled={draft.name.trim() === '' || Object.keys(changes).length === 0}
    >
      <TextInput
        label="Name"
        required
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
        error={error?.of('name')}
        autoComplete="off"
        data-autofocus={raised === undefined || undefined}
      />
      <MultiSelect
        label="Teams"
        description={
          elsewhere.length === 0
            ? 'A team is in at most one group.'
            : `Leaves its group: ${elsewhere.map(({ name, group }) => `${name} (${group})`).join(', ')}`
        }
        searchable
        data={[...new Set([...teams.map(({ name }) => name), ...draft.teams])].sort(byCodeUnit)}
        value={draft.teams}
        onChange={(names) => setDraft({ ...draft, teams: names })}
        error={error?.of('teams')}
        limit={100}
        nothingFoundMessage="No team matches"
      />
      <Textarea
        label="Note"
        placeholder="What it is for"
        value={draft.note ?? ''}
        onChange={(event) => setDraft({ ...draft, note: event.currentTarget.value || null })}
        error={error?.of('note')}
        maxLength={2000}
        autosize
        minRows={1}
        maxRows={8}
      />
      <OwnLimitFields
        value={draft}
        onChange={(limits) => setDraft({ ...draft, ...limits })}
        error={error}
        stored={shown && { owner: { group: shown.name }, budgets: shown.budgets }}
        unpriced="allow"
        raised={raised}
      />
      {shown?.teams.length === 0 && (
        <div>
          <RemoveAction
            verb="Delete"
            what="group"
            name={shown.name}
            remove={() => api.delete('/admin/v1/groups/{id}', { path: { id: shown.id }, shown })}
            lists={GROUP_LISTS}
            onRemoved={onClose}
          >
            No team is in it.
          </RemoveAction>
        </div>
      )}
    </FormModal>
  );
}

/** As the API sorts names. */
function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

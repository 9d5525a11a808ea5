import { Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import {
  AnnotationFields,
  type Annotations,
  annotationsOf,
  NO_ANNOTATIONS,
} from '../../forms/annotation-fields';
import { changesOf } from '../../forms/changes';
import { useLeads } from '../../app/session';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { LimitFields } from '../../limits/limit-fields';
import { type LimitMembers, limitMembersOf, UNLIMITED } from '../../limits/limit-draft';
import { GROUP_LISTS, groupsQuery } from './group';
import { SelfServiceFields } from './self-service-fields';
import type { Team } from './team';

type TeamDraft = LimitMembers & Annotations & Pick<Team, 'name' | 'disabled' | 'group' | 'self_service'>;

const draftOf = (team: Team): TeamDraft => ({
  name: team.name,
  disabled: team.disabled,
  group: team.group,
  self_service: team.self_service,
  ...limitMembersOf(team),
  ...annotationsOf(team),
});

/** Creates a team, or changes the one that is given. */
export function TeamForm({
  shown,
  raises = false,
  onClose,
  onSaved,
}: {
  shown?: Team;
  /** It was opened to raise a limit. */
  raises?: boolean;
  onClose: () => void;
  onSaved: (team: Team) => void;
}) {
  const stored =
    shown === undefined
      ? { name: '', disabled: false, group: null, self_service: null, ...UNLIMITED, ...NO_ANNOTATIONS }
      : draftOf(shown);
  const [draft, setDraft] = useState<TeamDraft>(stored);
  // The rest is for administrators.
  const leads = useLeads();
  const groups = useQuery({ ...groupsQuery, enabled: !leads }).data?.rows ?? [];
  const changes = changesOf<TeamDraft>(stored, draft);
  const { form, rejected: error } = useSave(
    (): Promise<Team> =>
      shown === undefined
        ? api.post('/admin/v1/teams', {
            body: {
              name: draft.name,
              group: draft.group,
              self_service: draft.self_service,
              ...limitMembersOf(draft),
              ...annotationsOf(draft),
            },
          })
        : api.patch('/admin/v1/teams/{id}', {
            path: { id: shown.id },
            body: changes,
            shown,
          }),
    ['keys', ...GROUP_LISTS],
    onSaved,
  );
  return (
    <FormModal
      title={shown === undefined ? 'Create a team' : `Edit team ${shown.name}`}
      onClose={onClose}
      action={shown === undefined ? 'Create team' : 'Save'}
      {...form}
      disabled={draft.name.trim() === '' || Object.keys(changes).length === 0}
    >
      {!leads && (
        <>
          <TextInput
            label="Name"
            required
            value={draft.name}
            onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
            error={error?.of('name')}
            autoComplete="off"
            data-autofocus={!raises || undefined}
          />
          {shown !== undefined && (
            <Select
              label="Status"
              allowDeselect={false}
              data={[
                { value: 'on', label: 'Active: its keys work' },
                { value: 'off', label: 'Disabled: its keys are rejected' },
              ]}
              value={draft.disabled ? 'off' : 'on'}
              onChange={(value) => setDraft({ ...draft, disabled: value === 'off' })}
            />
          )}
          {(groups.length > 0 || draft.group !== null) && (
            <Select
              label="Group"
              allowDeselect={false}
              searchable
              data={[
                { value: '', label: 'None' },
                ...[...new Set([...groups.map(({ name }) => name), draft.group ?? ''])].filter(Boolean),
              ]}
              value={draft.group ?? ''}
              onChange={(group) => setDraft({ ...draft, group: group || null })}
              error={error?.of('group')}
            />
          )}
          <AnnotationFields
            value={draft}
            onChange={(annotations) => setDraft({ ...draft, ...annotationsOf(annotations) })}
            error={error}
          />
          <LimitFields
            value={draft}
            onChange={(members) => setDraft({ ...draft, ...limitMembersOf(members) })}
            error={error}
            stored={shown && { owner: { team: shown.id }, budgets: shown.budgets }}
            raises={raises}
          />
        </>
      )}
      <SelfServiceFields
        value={draft.self_service}
        onChange={(self_service) => setDraft({ ...draft, self_service })}
        error={error}
        shown={shown}
      />
    </FormModal>
  );
}

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
import { ClaudeCodeFields } from './claude-code-fields';
import { GROUP_LISTS, groupsQuery } from './group';
import { ProviderRuleFields } from './provider-rule-fields';
import { SelfServiceFields } from './self-service-fields';
import { SignInFields } from './sign-in-fields';
import type { Team } from './team';

type TeamDraft = LimitMembers &
  Annotations &
  Pick<
    Team,
    | 'name'
    | 'disabled'
    | 'group'
    | 'providers'
    | 'default_provider'
    | 'self_service'
    | 'sign_in'
    | 'claude_code'
  >;

const draftOf = (team: Team): TeamDraft => ({
  name: team.name,
  disabled: team.disabled,
  group: team.group,
  providers: team.providers,
  default_provider: team.default_provider,
  self_service: team.self_service,
  sign_in: team.sign_in,
  claude_code: team.claude_code,
  ...limitMembersOf(team),
  ...annotationsOf(team),
});

const NEW = {
  name: '',
  disabled: false,
  group: null,
  providers: null,
  default_provider: null,
  self_service: null,
  sign_in: null,
  claude_code: null,
};

/** Creates a team, or changes the one that is given. */
export function TeamForm({
  shown,
  raised,
  onClose,
  onSaved,
}: {
  shown?: Team;
  /** It was opened to raise a limit. */
  raised?: string;
  onClose: () => void;
  onSaved: (team: Team) => void;
}) {
  const stored = shown === undefined ? { ...NEW, ...UNLIMITED, ...NO_ANNOTATIONS } : draftOf(shown);
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
              providers: draft.providers,
              default_provider: draft.default_provider,
              self_service: draft.self_service,
              sign_in: draft.sign_in,
              claude_code: draft.claude_code,
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
            data-autofocus={raised === undefined || undefined}
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
          <ProviderRuleFields
            value={draft}
            onChange={({ providers, default_provider }) =>
              setDraft({ ...draft, providers, default_provider })
            }
            error={error}
            shown={shown}
          />
          <LimitFields
            value={draft}
            onChange={(members) => setDraft({ ...draft, ...limitMembersOf(members) })}
            error={error}
            stored={shown && { owner: { team: shown.id }, budgets: shown.budgets }}
            raised={raised}
          />
        </>
      )}
      <SelfServiceFields
        value={draft.self_service}
        onChange={(self_service) => setDraft({ ...draft, self_service })}
        error={error}
        shown={shown}
      />
      {!leads && (
        <>
          <SignInFields
            value={draft.sign_in}
            onChange={(sign_in) => setDraft({ ...draft, sign_in })}
            error={error}
            shown={shown}
          />
          <ClaudeCodeFields
            value={draft.claude_code}
            onChange={(claude_code) => setDraft({ ...draft, claude_code })}
            error={error}
          />
        </>
      )}
    </FormModal>
  );
}

import { MultiSelect, Select, Text, TextInput } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import { FormModal } from '../../forms/form-modal';
import { ShownOnce } from '../../forms/shown-once';
import { useSave } from '../../forms/use-save';
import { type Role, ROLES, type Token } from './roles';

/** Creates a token of the admin API and shows it, once. */
export function CreateToken({ onClose }: { onClose: () => void }) {
  const allTeams = useQuery(teamsQuery).data?.rows ?? [];
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [teams, setTeams] = useState<string[]>([]);
  const [expires_at, setExpiry] = useState<string | null>(null);
  const needsTeams = role === 'team' || role === 'lead';
  const create = useSave(
    (): Promise<Token & { token: string }> =>
      api.post('/admin/v1/tokens', { body: { name, role, expires_at, teams: needsTeams ? teams : null } }),
    ['tokens'],
  );
  const error = create.rejected;
  if (create.data !== undefined) {
    return (
      <ShownOnce
        secret={create.data.token}
        what="token"
        title={`Token ${create.data.name}`}
        lost="If it is lost, revoke it and create another."
        onClose={onClose}
      >
        <Text size="sm">
          {role === 'metrics'
            ? 'Prometheus sends it as Authorization: Bearer to GET /metrics.'
            : 'It signs in to this console. Programs send it as Authorization: Bearer.'}
        </Text>
      </ShownOnce>
    );
  }
  return (
    <FormModal
      title="Create a token"
      onClose={onClose}
      action="Create token"
      {...create.form}
      disabled={name.trim() === '' || (needsTeams && teams.length === 0)}
      size="md"
    >
      <TextInput
        label="Name"
        description="Of the person or program. The audit log shows it."
        required
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={error?.of('name')}
        autoComplete="off"
        data-autofocus
      />
      <Select
        label="Role"
        description={ROLES[role].may}
        allowDeselect={false}
        data={Object.entries(ROLES).map(([value, { label }]) => ({ value, label }))}
        value={role}
        onChange={(value) => setRole(value as Role)}
        error={error?.of('role')}
      />
      {needsTeams && (
        <MultiSelect
          label="Teams"
          required
          searchable
          placeholder={teams.length === 0 ? 'Choose one or more' : undefined}
          data={allTeams.map((team) => team.name)}
          value={teams}
          onChange={setTeams}
          error={error?.of('teams')}
          nothingFoundMessage="There is no such team; add it on the page Teams"
        />
      )}
      <DateTimePicker
        label="Expires"
        placeholder="Never, or as late as your own access allows"
        clearable
        clearButtonProps={{ 'aria-label': 'Never expires' }}
        valueFormat="MMM D, YYYY HH:mm"
        minDate={new Date()}
        value={expires_at === null ? null : new Date(expires_at)}
        onChange={(value) => setExpiry(value === null ? null : new Date(value).toISOString())}
        error={error?.of('expires_at')}
      />
    </FormModal>
  );
}

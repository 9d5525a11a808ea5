import { Button, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import { useIsMember, useLeads } from '../../app/session';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { IssuedSecret } from './issued-secret';
import { type KeyDraft, KeyFields, NEW_KEY } from './key-fields';
import { OwnKeyFields } from './own-key-fields';

/** Creates a key and shows its secret, once. */
export function CreateKey({ team: given, onClose }: { team: string | undefined; onClose: () => void }) {
  const leads = useLeads();
  const isMember = useIsMember() && !leads;
  const teams = useQuery(teamsQuery).data?.rows.filter(
    ({ self_service }) => !isMember || self_service !== null,
  );
  const only = teams?.length === 1 ? teams[0]!.name : undefined;
  const [chosen, setTeam] = useState(given);
  const team = chosen ?? only ?? '';
  const [draft, setDraft] = useState(NEW_KEY);
  const [more, setMore] = useState(false);
  const create = useSave(() => {
    // What members may not choose is not sent.
    const body = isMember ? { team, name: draft.name, expires_at: draft.expires_at } : { team, ...draft };
    return api.post('/admin/v1/keys', { body: body as { team: string } & KeyDraft });
  }, ['keys']);
  const error = create.rejected;
  if (create.data !== undefined) {
    // A key without a secret is not created here.
    const { key, name } = create.data;
    return (
      <IssuedSecret secret={key!} title={`Key ${name} of team ${team}`} calls={{ team }} onClose={onClose} />
    );
  }
  return (
    <FormModal
      title="Create a key"
      onClose={onClose}
      action="Create key"
      {...create.form}
      disabled={team === '' || draft.name.trim() === ''}
    >
      <Select
        label="Team"
        placeholder="Choose a team"
        required
        searchable
        data={(teams ?? []).map(({ name }) => name)}
        value={team === '' ? null : team}
        onChange={(name) => setTeam(name ?? '')}
        error={error?.of('team')}
        nothingFoundMessage="There is no such team; add it on the page Teams"
      />
      {more ? (
        <KeyFields team={team} draft={draft} onChange={setDraft} error={error} />
      ) : (
        <>
          <TextInput
            label="Name"
            description="Unique within its team."
            required
            value={draft.name}
            onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
            error={error?.of('name')}
            autoComplete="off"
            data-autofocus
          />
          {isMember ? (
            team !== '' && (
              <OwnKeyFields
                team={team}
                expiresAt={draft.expires_at}
                onChange={(expires_at) => setDraft({ ...draft, expires_at })}
                error={error?.of('expires_at')}
              />
            )
          ) : (
            <div>
              <Button variant="default" size="xs" onClick={() => setMore(true)}>
                Expiry, limits and more
              </Button>
            </div>
          )}
        </>
      )}
    </FormModal>
  );
}

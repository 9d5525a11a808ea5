import { NumberInput, Select, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ApiError } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { ConfirmByName } from '../../forms/confirm-by-name';
import { FormModal } from '../../forms/form-modal';
import { IssuedSecret } from './issued-secret';
import type { Key } from './key';
import { draftOf, KeyFields } from './key-fields';

interface Props {
  shown: Key;
  onClose: () => void;
}

/** What the changes of a key have in common: they name its version, and lists show it again. */
export function useKeyChange<Result, Input = void>(change: (input: Input) => Promise<Result>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    gcTime: 0,
    onSuccess: () =>
      Promise.all(['keys', 'key', 'limits'].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

export function EditKey({ shown, onClose }: Props) {
  const [draft, setDraft] = useState(draftOf(shown));
  const changes = changesOf(draftOf(shown), draft);
  const save = useKeyChange(() =>
    api.patch('/admin/v1/keys/{id}', { path: { id: shown.id }, body: changes, shown }),
  );
  return (
    <FormModal
      title={`Edit key ${shown.name}`}
      onClose={onClose}
      onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
      action="Save"
      pending={save.isPending}
      error={save.error}
      disabled={Object.keys(changes).length === 0}
    >
      <KeyFields
        draft={draft}
        onChange={setDraft}
        error={save.error instanceof ApiError ? save.error : undefined}
      />
    </FormModal>
  );
}

const GRACES = [
  { value: '0', label: 'At once' },
  { value: '3600', label: 'After an hour' },
  { value: '86400', label: 'After a day' },
  { value: '604800', label: 'After 7 days' },
  { value: 'other', label: 'After another time' },
];
const LONGEST_GRACE_H = 720;

/** A new secret for a key; the previous one works for a while longer. */
export function RotateKey({ shown, onClose }: Props) {
  const [grace, setGrace] = useState('86400');
  const [hours, setHours] = useState<number | string>(48);
  const seconds = grace === 'other' ? Math.round(Number(hours) * 3_600) : Number(grace);
  const rotate = useKeyChange(() =>
    api.post('/admin/v1/keys/{id}/rotate', {
      path: { id: shown.id },
      body: { grace_seconds: seconds },
      shown,
    }),
  );
  if (rotate.data !== undefined) {
    return (
      <IssuedSecret secret={rotate.data.key} title={`New secret of key ${shown.name}`} onClose={onClose} />
    );
  }
  return (
    <FormModal
      title={`Rotate key ${shown.name}`}
      onClose={onClose}
      onSubmit={() => rotate.mutate()}
      action="Rotate key"
      pending={rotate.isPending}
      error={rotate.error}
      size="md"
    >
      <Text size="sm">
        The key gets a new secret. Its name, limits and usage stay. If the old secret has leaked, end it at
        once.
      </Text>
      {shown.previous_secret_expires_at !== null && (
        <Text size="sm">
          The secret before it still works. It stops working at once: a key has at most two secrets.
        </Text>
      )}
      <Select
        label="The old secret stops working"
        allowDeselect={false}
        data={GRACES}
        value={grace}
        onChange={(value) => setGrace(value ?? '0')}
        data-autofocus
      />
      {grace === 'other' && (
        <NumberInput label="Hours" min={0} max={LONGEST_GRACE_H} value={hours} onChange={setHours} />
      )}
    </FormModal>
  );
}

export function RevokeKey({ shown, opened, onClose }: Props & { opened: boolean }) {
  const revoke = useKeyChange(() =>
    api.post('/admin/v1/keys/{id}/revoke', { path: { id: shown.id }, body: {}, shown }),
  );
  return (
    <ConfirmByName
      opened={opened}
      onClose={onClose}
      title={`Revoke key ${shown.name}`}
      name={shown.name}
      action="Revoke key"
      pending={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate(undefined, { onSuccess: onClose })}
    >
      All its secrets stop working at once, and for ever. Calls with it get 401. Its usage stays in the log.
      To stop it for a while, disable it instead.
    </ConfirmByName>
  );
}

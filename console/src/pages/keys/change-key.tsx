import { NumberInput, Select, Text } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { IssuedSecret } from './issued-secret';
import type { Key } from './key';
import { draftOf, KeyFields } from './key-fields';

interface Props {
  shown: Key;
  onClose: () => void;
}

/** The queries that show a key. */
export const KEY_LISTS = ['keys', 'key', 'limits'];

/** @param raised the name of the limit that it was opened to raise */
export function EditKey({ shown, onClose, raised }: Props & { raised?: string }) {
  const [draft, setDraft] = useState(draftOf(shown));
  const changes = changesOf(draftOf(shown), draft);
  const save = useSave(
    () => api.patch('/admin/v1/keys/{id}', { path: { id: shown.id }, body: changes, shown }),
    KEY_LISTS,
    onClose,
  );
  return (
    <FormModal
      title={`Edit key ${shown.name}`}
      onClose={onClose}
      action="Save"
      {...save.form}
      disabled={Object.keys(changes).length === 0}
    >
      <KeyFields
        team={shown.team}
        stored={shown}
        draft={draft}
        onChange={setDraft}
        error={save.rejected}
        raised={raised}
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
const MAX_GRACE_H = 720;

/** A new secret for a key; the previous one works for a while longer. */
export function RotateKey({ shown, onClose }: Props) {
  const [grace, setGrace] = useState('86400');
  const [hours, setHours] = useState<number | string>(48);
  const seconds = grace === 'other' ? Math.round(Number(hours) * 3_600) : Number(grace);
  const rotate = useSave(
    () =>
      api.post('/admin/v1/keys/{id}/rotate', {
        path: { id: shown.id },
        body: { grace_seconds: seconds },
        shown,
      }),
    KEY_LISTS,
  );
  if (rotate.data !== undefined) {
    return (
      <IssuedSecret
        secret={rotate.data.key}
        title={`New secret of key ${shown.name}`}
        calls={{ key: shown.id }}
        onClose={onClose}
      />
    );
  }
  return (
    <FormModal
      title={`Rotate key ${shown.name}`}
      onClose={onClose}
      action="Rotate key"
      {...rotate.form}
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
        <NumberInput label="Hours" min={0} max={MAX_GRACE_H} value={hours} onChange={setHours} />
      )}
    </FormModal>
  );
}

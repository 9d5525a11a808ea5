import { useState } from 'react';
import { api, type ResponseOf } from '../../api/client';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { type OwnLimits, ownLimitsOf } from '../../limits/limit-draft';
import { OwnLimitFields } from '../../limits/limit-fields';

type Installation = ResponseOf<'/admin/v1/limits/installation', 'get'>;

/** Changes the limits that all calls share. */
export function InstallationForm({ shown, onClose }: { shown: Installation; onClose: () => void }) {
  const stored = ownLimitsOf(shown);
  const [draft, setDraft] = useState<OwnLimits>(stored);
  const changes = changesOf(stored, draft);
  const { form, rejected: error } = useSave(
    () => api.patch('/admin/v1/limits/installation', { body: changes }),
    ['limits'],
    onClose,
  );
  return (
    <FormModal
      title="Limits of all calls"
      onClose={onClose}
      action="Save"
      {...form}
      disabled={Object.keys(changes).length === 0}
    >
      <OwnLimitFields
        value={draft}
        onChange={setDraft}
        error={error}
        stored={{ owner: {}, budgets: shown.budgets }}
        unpriced="allow"
      />
    </FormModal>
  );
}

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type ResponseOf } from '../../api/client';
import { Dialog } from '../../display/dialog';
import { ErrorAlert } from '../../display/error-alert';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { type OwnLimits, ownLimitsOf } from '../../limits/limit-draft';
import { OwnLimitFields } from '../../limits/own-limit-fields';

type InstallationLimits = ResponseOf<'/admin/v1/limits/installation', 'get'>;

const TITLE = 'Limits of all calls';

/** Changes the limits that all calls through this gateway share. @param raised the name of the one that it was opened to raise */
export function InstallationForm({ raised, onClose }: { raised: string | undefined; onClose: () => void }) {
  const { data, error, isFetchedAfterMount, refetch } = useQuery({
    queryKey: ['limits', 'installation'],
    queryFn: ({ signal }) => api.get('/admin/v1/limits/installation', { signal }),
    // What was read before may have been changed since by somebody else.
    refetchOnMount: 'always',
  });
  if (error !== null) {
    return (
      <Dialog opened onClose={onClose} title={TITLE}>
        <ErrorAlert error={error} retry={() => void refetch()} />
      </Dialog>
    );
  }
  return data !== undefined && isFetchedAfterMount && <Form shown={data} raised={raised} onClose={onClose} />;
}

function Form({
  shown,
  raised,
  onClose,
}: {
  shown: InstallationLimits;
  raised: string | undefined;
  onClose: () => void;
}) {
  const [stored] = useState(() => ownLimitsOf(shown));
  const [draft, setDraft] = useState(stored);
  const changes = changesOf<OwnLimits>(stored, draft);
  const { form, rejected } = useSave(
    () => api.patch('/admin/v1/limits/installation', { body: changes, shown }),
    ['limits'],
    onClose,
  );
  return (
    <FormModal
      title={TITLE}
      onClose={onClose}
      action="Save"
      {...form}
      disabled={Object.keys(changes).length === 0}
    >
      <OwnLimitFields
        value={draft}
        onChange={(changed) => setDraft({ ...draft, ...changed })}
        error={rejected}
        unpriced="allow"
        raised={raised}
        stored={{ owner: {}, budgets: stored.budgets }}
      />
    </FormModal>
  );
}

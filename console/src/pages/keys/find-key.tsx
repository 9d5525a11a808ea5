import { Alert, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ApiError } from '../../api/client';
import { Facts } from '../../display/facts';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { FormModal } from '../../forms/form-modal';
import { STATUS_TONES } from './key';

/** Finds the key of a secret that was found somewhere, such as in a public repository. */
export function FindKey({ onOpen, onClose }: { onOpen: (id: string) => void; onClose: () => void }) {
  const [secret, setSecret] = useState('');
  const find = useMutation({
    mutationFn: (key: string) => api.post('/admin/v1/keys/find', { body: { key } }),
    gcTime: 0,
  });
  const found = find.data;
  const unknown = find.error instanceof ApiError && find.error.status === 404;
  return (
    <FormModal
      title="Whose key is this?"
      onClose={onClose}
      onSubmit={() => (found === undefined ? find.mutate(secret.trim()) : onOpen(found.id))}
      action={found === undefined ? 'Find' : 'Open the key'}
      pending={find.isPending}
      error={unknown ? null : find.error}
      disabled={secret.trim() === ''}
      size="md"
      keeps={false}
    >
      <PasswordInput
        label="Secret"
        description="A whole gateway key that was found, for example in a log or a repository. It is sent to this gateway only, and stored nowhere."
        value={secret}
        onChange={(event) => {
          setSecret(event.currentTarget.value);
          find.reset();
        }}
        autoComplete="off"
        spellCheck={false}
        visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret', tabIndex: 0 }}
        data-autofocus
      />
      <div aria-live="polite">
        {unknown && (
          <Alert variant="outline" color="gray" title="Not a key of this gateway">
            No key has or had this secret. Check that it was copied whole.
          </Alert>
        )}
        {found !== undefined && (
          <Stack gap="xs">
            <Facts
              facts={[
                ['Key', found.name],
                ['Team', found.team],
                ['Status', <StatusBadge tone={STATUS_TONES[found.status]}>{found.status}</StatusBadge>],
                [
                  'This secret',
                  found.secret_status === 'ended' ? (
                    'no longer works: the key was rotated'
                  ) : found.status !== 'active' ? (
                    `does not work: the key is ${found.status}`
                  ) : found.secret_expires_at === null ? (
                    'works'
                  ) : (
                    <>
                      works until it ends <RelativeTime at={found.secret_expires_at} />
                    </>
                  ),
                ],
                ['Last used', <RelativeTime at={found.last_used_at} empty="never" />],
              ]}
            />
            {found.status === 'active' && found.secret_status === 'active' && (
              <Text size="sm">If it has leaked, open the key and rotate or revoke it.</Text>
            )}
          </Stack>
        )}
      </div>
    </FormModal>
  );
}

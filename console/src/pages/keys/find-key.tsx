import { Alert, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ApiError, type ResponseOf } from '../../api/client';
import { Facts } from '../../display/facts';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { FormModal } from '../../forms/form-modal';
import { STATUS_TONES } from './key';

type FoundKey = ResponseOf<'/admin/v1/keys/find', 'post'>;

const REMEDIES: Record<FoundKey['kind'], string> = {
  key: 'If it has leaked, open the key and rotate or revoke it.',
  sign_in: 'If it has leaked, end the sign-in on the page People.',
  exchange:
    'If it has leaked, disable its trust on the page Trusts, or end only this token at /oauth/revoke.',
};

/** Why a secret does not work, whatever the state of its key. */
function endOf({ kind, secret_expired: isExpired }: FoundKey): string {
  if (kind === 'key') return 'no longer works: the key was rotated';
  if (isExpired) return 'no longer works: it has expired or was revoked';
  return kind === 'exchange'
    ? 'does not work: its trust is disabled, or the key was rotated since'
    : 'no longer works: its sign-in or person has ended';
}

/** What a token is; nothing for a secret of the key itself. */
function tokenFacts({ kind, trust, subject }: FoundKey): [string, string | null][] {
  if (kind === 'key') return [];
  return [
    ['Kind', kind === 'exchange' ? `token of the trust ${trust}` : 'token of a sign-in'],
    ['Issued to', subject],
  ];
}

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
        description="A whole gateway key or token that was found, for example in a log or a repository. It is sent to this gateway only, and stored nowhere."
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
            No key has or had this secret. Check that it was copied whole. Tokens are deleted a day after they
            end, and at once with their trust.
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
                    endOf(found)
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
                ...tokenFacts(found),
                ['Last used', <RelativeTime at={found.last_used_at} empty="never" />],
              ]}
            />
            {found.status === 'active' && found.secret_status === 'active' && (
              <Text size="sm">{REMEDIES[found.kind]}</Text>
            )}
          </Stack>
        )}
      </div>
    </FormModal>
  );
}

import { Group, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { providersQuery } from '../../api/load-all';
import { useLeads, useMayChange } from '../../app/session';
import { PageButton, PageLink } from '../../display/links';
import { StatusBadge } from '../../display/status-badge';
import { DialogButton } from '../../forms/dialog-button';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { sharedState, useUrlState } from '../../url/url-state';
import { inputsOf } from '../providers/auth';
import { type Provider, SECRET_STATES } from '../providers/provider';
import type { Team } from './team';

/** The providers that belong to a team. Its leads see them too, and replace their secrets. */
export function Accounts({ shown }: { shown: Team }) {
  const [url] = useUrlState();
  const mayChange = useMayChange();
  const leads = useLeads();
  const providers = useQuery(providersQuery).data?.data;
  const own = providers?.filter(({ team }) => team === shown.name) ?? [];
  return (
    <>
      <Group justify="space-between">
        <Title order={3} size="h5">
          Accounts
        </Title>
        {mayChange && (
          <PageButton
            size="xs"
            variant="default"
            to="/providers"
            search={{ ...sharedState(url), new: '1', team: shown.name }}
          >
            Add account
          </PageButton>
        )}
      </Group>
      {providers !== undefined && own.length === 0 && (
        <Text size="sm">
          No account of its own: it uses providers of all teams, and shares their files and batches.
        </Text>
      )}
      {own.length > 0 && (
        <Stack component="ul" gap="sm" m={0} p={0} aria-label="Accounts" style={{ listStyle: 'none' }}>
          {own.map((provider) => (
            <Group component="li" key={provider.name} justify="space-between" gap="xs">
              <div>
                <Group component="span" gap={8} display="inline-flex">
                  {leads ? (
                    <Text span fw={600} size="sm">
                      {provider.name}
                    </Text>
                  ) : (
                    <PageLink to="/providers" search={{ ...sharedState(url), open: provider.name }} size="sm">
                      {provider.name}
                    </PageLink>
                  )}
                  {shown.default_provider === provider.name && (
                    <StatusBadge tone="neutral">default</StatusBadge>
                  )}
                  {!provider.enabled && <StatusBadge tone="warning">disabled</StatusBadge>}
                </Group>
                <Text c="dimmed" size="xs" style={{ overflowWrap: 'anywhere' }}>
                  {provider.url}; secret: {SECRET_STATES[provider.secret_state].label}
                </Text>
              </div>
              {(mayChange || leads) && inputsOf(provider.auth, provider.auth_settings).secret !== null && (
                <DialogButton label="Replace secret" variant="default">
                  {(close) => <SecretForm shown={provider} onClose={close} />}
                </DialogButton>
              )}
            </Group>
          ))}
        </Stack>
      )}
    </>
  );
}

/** Replaces the secret of a provider. It is sent once and never shown. */
function SecretForm({ shown, onClose }: { shown: Provider; onClose: () => void }) {
  const [secret, setSecret] = useState('');
  const { form, rejected: error } = useSave(
    (): Promise<Provider> =>
      api.patch('/admin/v1/providers/{name}', { path: { name: shown.name }, body: { secret }, shown }),
    ['providers', 'audit'],
    () => {
      setSecret('');
      onClose();
    },
  );
  return (
    <FormModal
      title={`Replace the secret of ${shown.name}`}
      onClose={onClose}
      action="Replace secret"
      {...form}
      disabled={secret === ''}
    >
      <PasswordInput
        label="New secret"
        description={`Sent to ${shown.url} from now on. Stored encrypted and never shown again.`}
        required
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value.trim())}
        error={error?.of('secret')}
        aria-invalid={error?.of('secret') !== undefined}
        autoComplete="new-password"
        spellCheck={false}
        data-autofocus
        visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret', tabIndex: 0 }}
      />
    </FormModal>
  );
}

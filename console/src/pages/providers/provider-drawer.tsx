import { Button, Divider, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { attentionQuery } from '../../api/load-all';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { PageLink } from '../../display/links';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime, RelativeTime } from '../../figures/figure';
import { DialogButton } from '../../forms/dialog-button';
import { RemoveAction } from '../../forms/remove-action';
import { useSave } from '../../forms/use-save';
import { sharedState, useUrlState } from '../../url/url-state';
import { OwnUsage } from '../../usage/own-usage';
import { AUTHS, inputsOf, sourceLabel } from './auth';
import { failingOf, type Provider, SECRET_STATES } from './provider';
import { ProviderForm } from './provider-form';
import { ProbeResult, useProviderTest } from './provider-test';

interface Props {
  shown: Provider;
  /** When its secret was last set; undefined if unknown. */
  secretAt: string | undefined;
  test: ReturnType<typeof useProviderTest>;
}

export function ProviderDrawer({
  shown,
  onClose,
  ...props
}: Omit<Props, 'shown'> & { shown: Provider | undefined; onClose: () => void }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={onClose} title={shown?.name ?? 'Provider'}>
      {shown !== undefined && <Details shown={shown} onClose={onClose} {...props} />}
    </SideDrawer>
  );
}

function Details({ shown, secretAt, test, onClose }: Props & { onClose: () => void }) {
  const secret = SECRET_STATES[shown.secret_state];
  const isTested = test.variables === shown.name;
  const [url] = useUrlState();
  const failing = failingOf(useQuery(attentionQuery).data, shown);
  const shared = sharedState(url);
  return (
    <Stack gap="md">
      <div>
        <Actions shown={shown} test={test} onClose={onClose} />
        <div aria-live="polite" style={{ marginTop: isTested ? 'var(--mantine-spacing-md)' : 0 }}>
          {isTested && <ProbeResult name={shown.name} probe={test.data} error={test.error} />}
        </div>
      </div>
      <Facts
        facts={[
          [
            'Status',
            <StatusBadge tone={shown.enabled ? 'good' : 'warning'}>
              {shown.enabled ? 'enabled' : 'disabled'}
            </StatusBadge>,
          ],
          [
            'Its calls',
            failing && (
              <>
                <StatusBadge tone="bad">Failing</StatusBadge>{' '}
                {failing.since !== null && (
                  <>
                    since <ExactTime at={failing.since} />:{' '}
                  </>
                )}
                {failing.detail}
              </>
            ),
          ],
          [
            'Team',
            shown.team === null ? undefined : (
              <PageLink to="/teams" search={{ ...shared, q: shown.team }} size="sm">
                {shown.team}
              </PageLink>
            ),
          ],
          ['Default', shown.default ? 'yes: calls to /v1 go to it' : 'no'],
          [
            'Takes its place',
            shown.shadowed_by === null ? undefined : 'the provider of PROVIDER_URL is the default meanwhile',
          ],
          ['URL', <CopyableId id={shown.url} what="URL" />],
          [
            'Programs send to',
            <CopyableId id={`${window.location.origin}/p/${shown.name}`} what="address" />,
          ],
          ['Secret', secret.label],
          ['Secret set', secretAt === undefined ? undefined : <RelativeTime at={secretAt} />],
          ['Authentication', AUTHS[shown.auth].label],
          ['Credential', sourceLabel(shown.auth, shown.auth_settings)],
          ...inputsOf(shown.auth, shown.auth_settings).fields.map(
            ({ name, label }): [string, string | undefined] => [label, shown.auth_settings?.[name]],
          ),
          ['Service account', shown.auth_settings?.client_email],
          [
            'Client disconnects',
            shown.on_disconnect === 'finish' ? 'the call is finished' : 'the call is cancelled',
          ],
          ['Price list', shown.catalog ?? `prices of ${shown.name} only`],
          ['Added', shown.created_at === null ? 'by PROVIDER_URL' : <ExactTime at={shown.created_at} />],
          ['Changed', shown.updated_at === null ? undefined : <ExactTime at={shown.updated_at} />],
        ]}
      />
      <Divider />
      <Group justify="space-between">
        <Title order={3} size="h5">
          Usage
        </Title>
        <Group gap="md">
          <PageLink
            to="/requests"
            search={{
              ...shared,
              ...(failing && { range: '1h', from: undefined, to: undefined }),
              provider: shown.name,
              failed: 'true',
            }}
            size="sm"
          >
            Its failed requests
          </PageLink>
          {shown.id !== null && (
            <PageLink to="/audit" search={{ tz: url.tz, range: '90d', subject_id: shown.id }} size="sm">
              Its changes
            </PageLink>
          )}
        </Group>
      </Group>
      <OwnUsage
        filter={{ provider: shown.name }}
        by="model"
        fallback="24h"
        shows={failing === undefined ? 'cost' : 'errors'}
      />
    </Stack>
  );
}

function Actions({ shown, test, onClose }: Omit<Props, 'secretAt'> & { onClose: () => void }) {
  const enable = useSave(
    () =>
      api.patch('/admin/v1/providers/{name}', {
        path: { name: shown.name },
        body: { enabled: !shown.enabled },
        shown,
      }),
    ['providers', 'attention'],
  ).form;
  if (!useMayChange()) return null;
  return (
    <>
      <Group gap="xs">
        <Button
          size="xs"
          onClick={() => test.mutate(shown.name)}
          loading={test.isPending && test.variables === shown.name}
        >
          Test
        </Button>
        {shown.source === 'stored' && (
          <>
            <DialogButton label="Edit" variant="default">
              {(close) => <ProviderForm shown={shown} onClose={close} onSaved={close} />}
            </DialogButton>
            <Button size="xs" variant="default" onClick={enable.onSubmit} loading={enable.pending}>
              {shown.enabled ? 'Disable' : 'Enable'}
            </Button>
            <RemoveAction
              what="provider"
              name={shown.name}
              remove={() => api.delete('/admin/v1/providers/{name}', { path: { name: shown.name }, shown })}
              lists={['providers']}
              onRemoved={onClose}
            >
              Calls to it are rejected from now on, and its secret is deleted. Its usage stays in the log. To
              stop it for a while, disable it instead.
            </RemoveAction>
          </>
        )}
      </Group>
      <ErrorAlert error={enable.error} />
      {shown.source === 'environment' && (
        <Text size="sm" c="dimmed">
          PROVIDER_URL sets this provider. Change it there and restart the gateway.
        </Text>
      )}
    </>
  );
}

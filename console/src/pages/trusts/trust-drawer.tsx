import { Alert, Button, Divider, Group, Stack, Text, Textarea, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { CheckIcon, WarningIcon } from '../../display/icons';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime, RelativeTime } from '../../figures/figure';
import { count } from '../../figures/numbers';
import { DialogButton } from '../../forms/dialog-button';
import { FormModal } from '../../forms/form-modal';
import { RemoveAction } from '../../forms/remove-action';
import { useRemoval } from '../../forms/use-removal';
import { useSave } from '../../forms/use-save';
import { sharedState, useUrlState } from '../../url/url-state';
import { conditionsOf, PRESETS, stateOf, type Trust, TRUST_LISTS } from './trust';
import { TrustForm } from './trust-form';

const REFRESH_MS = 10_000;

/** One trust: whose tokens it accepts, which it did not accept, and what can be done with it. */
export function TrustDrawer({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const removal = useRemoval(id);
  const query = useQuery({
    queryKey: ['trusts', 'one', id],
    queryFn: ({ signal }) => api.get('/admin/v1/trusts/{id}', { path: { id: id ?? '' }, signal }),
    enabled: id !== undefined && removal === undefined,
    refetchInterval: REFRESH_MS,
  });
  const trust = query.data;
  return (
    <SideDrawer
      opened={id !== undefined && removal !== 'success'}
      onClose={onClose}
      title={trust?.name ?? 'Trust'}
    >
      {trust !== undefined ? (
        <Details key={trust.id} shown={trust} onClose={onClose} />
      ) : query.error !== null ? (
        <ErrorAlert error={query.error} retry={() => void query.refetch()} />
      ) : (
        <LoadingRows />
      )}
    </SideDrawer>
  );
}

function Details({ shown, onClose }: { shown: Trust; onClose: () => void }) {
  const mayChange = useMayChange();
  const [url] = useUrlState();
  const state = stateOf(shown);
  return (
    <Stack gap="md">
      {mayChange && <Actions shown={shown} onClose={onClose} />}
      <Facts
        facts={[
          ['State', <StatusBadge tone={state.tone}>{state.label}</StatusBadge>],
          [
            'Key',
            <PageLink to="/keys" search={{ ...sharedState(url), key: shown.key_id }} size="sm">
              {shown.key}
            </PageLink>,
          ],
          ['Tokens now', `${count(shown.live_tokens)} of ${count(shown.max_live)}`],
          ['Last used', <RelativeTime at={shown.last_used_at} empty="never" />],
          ['Preset', PRESETS[shown.preset].label],
          ['Issuer', <CopyableId id={shown.issuer} what="issuer" />],
          ['Audience', <CopyableId id={shown.audience} what="audience" />],
          ['Public keys', shown.jwks === null ? 'read from the issuer' : 'stored'],
          ...conditionsOf(shown.claims).map(
            ({ name, values }) => [`Claim ${name}`, values.join(', ')] as const,
          ),
          ['Branches', shown.any_ref ? 'every branch, tag and environment' : undefined],
          ['Networks', shown.cidrs === null ? undefined : shown.cidrs.join(', ')],
          ['A token works for', `${shown.token_minutes} minutes`],
          ['Identity tokens live', `${shown.longest_jwt_minutes} minutes at most`],
          ['Created', <ExactTime at={shown.created_at} />],
          ['Trust ID', <CopyableId id={shown.id} what="trust ID" short />],
        ]}
      />
      <Divider />
      <Failures trust={shown} />
    </Stack>
  );
}

function Failures({ trust }: { trust: Trust }) {
  const removal = useRemoval(trust.id);
  const failures = useQuery({
    queryKey: ['trust-failures', trust.id],
    queryFn: ({ signal }) => api.get('/admin/v1/trusts/{id}/failures', { path: { id: trust.id }, signal }),
    enabled: removal === undefined,
    refetchInterval: REFRESH_MS,
  });
  const rows = failures.data?.data;
  return (
    <section aria-labelledby="failures">
      <Title order={3} size="h5" id="failures" mb="xs">
        Rejected tokens
      </Title>
      <ErrorAlert error={failures.error} />
      {rows === undefined ? (
        failures.error === null && <LoadingRows rows={3} />
      ) : rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          None that its issuer has signed.
        </Text>
      ) : (
        <Stack gap="sm">
          {rows.map(({ id, at, reason, claims }) => (
            <div key={id}>
              <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                <RelativeTime at={at} />: {reason}
              </Text>
              <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                {JSON.stringify(claims)}
              </Text>
            </div>
          ))}
        </Stack>
      )}
    </section>
  );
}

function Actions({ shown, onClose }: { shown: Trust; onClose: () => void }) {
  const path = { id: shown.id };
  const disable = useSave(
    () => api.patch('/admin/v1/trusts/{id}', { path, body: { enabled: !shown.enabled }, shown }),
    TRUST_LISTS,
  ).form;
  return (
    <>
      <Group gap="xs">
        <DialogButton label="Edit">
          {(close) => <TrustForm shown={shown} onClose={close} onSaved={close} />}
        </DialogButton>
        <DialogButton label="Test a token" variant="default">
          {(close) => <TestToken shown={shown} onClose={close} />}
        </DialogButton>
        <Button size="xs" variant="default" onClick={disable.onSubmit} loading={disable.pending}>
          {shown.enabled ? 'Disable' : 'Enable'}
        </Button>
        <RemoveAction
          id={shown.id}
          what="trust"
          name={shown.name}
          remove={() => api.delete('/admin/v1/trusts/{id}', { path, shown })}
          lists={TRUST_LISTS}
          onRemoved={onClose}
        >
          All its tokens stop working at once, and none is issued any more. Its key stays. To stop it for a
          while, disable it instead.
        </RemoveAction>
      </Group>
      {!shown.enabled && (
        <Text size="sm" c="dimmed">
          None of its tokens works, and none is issued.
        </Text>
      )}
      <ErrorAlert error={disable.error} />
    </>
  );
}

/** Holds an identity token against the trust, check by check. The token is kept nowhere. */
function TestToken({ shown, onClose }: { shown: Trust; onClose: () => void }) {
  const [token, setToken] = useState('');
  const test = useMutation({
    mutationFn: () =>
      api.post('/admin/v1/trusts/{id}/test', { path: { id: shown.id }, body: { token: token.trim() } }),
    gcTime: 0,
  });
  const verdict = test.data;
  return (
    <FormModal
      title={`Test a token with ${shown.name}`}
      onClose={onClose}
      onSubmit={() => test.mutate()}
      action="Test"
      pending={test.isPending}
      error={test.error}
      disabled={token.trim() === ''}
      keeps={false}
    >
      <Textarea
        label="Identity token"
        description="As the job or pod has it. It issues nothing, and the networks of the trust are not checked."
        required
        value={token}
        onChange={(event) => {
          setToken(event.currentTarget.value);
          test.reset();
        }}
        autosize
        minRows={4}
        maxRows={10}
        spellCheck={false}
        autoComplete="off"
        data-autofocus
      />
      <div aria-live="polite">
        {verdict !== undefined && (
          <Stack gap="sm">
            <Alert
              role="status"
              variant="outline"
              color={verdict.accepted ? 'teal' : 'red'}
              icon={verdict.accepted ? <CheckIcon /> : <WarningIcon />}
              title={verdict.accepted ? 'It would be accepted' : 'It would be rejected'}
              styles={{ title: { color: verdict.accepted ? 'var(--postern-good)' : 'var(--postern-bad)' } }}
            >
              {verdict.accepted && <span style={{ overflowWrap: 'anywhere' }}>As {verdict.subject}.</span>}
            </Alert>
            <Facts
              facts={verdict.checks.map(({ name, detail }) => [
                name,
                detail === null ? 'met' : `not met: ${detail}`,
              ])}
            />
          </Stack>
        )}
      </div>
    </FormModal>
  );
}

import { Button, Divider, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import { useIsMember, useIsOwn, useLeads, useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime, RelativeTime } from '../../figures/figure';
import { duration } from '../../figures/numbers';
import { annotationFacts } from '../../forms/annotation-fields';
import { DialogButton } from '../../forms/dialog-button';
import { RemoveAction } from '../../forms/remove-action';
import { useSave } from '../../forms/use-save';
import { modelFacts } from '../../limits/limit-facts';
import { LimitList } from '../../limits/limit-list';
import { sharedState, useUrlState, withRange } from '../../url/url-state';
import { OwnUsage } from '../../usage/own-usage';
import type { Team } from '../teams/team';
import { EditKey, KEY_LISTS, RotateKey } from './change-key';
import { KeyTokens } from './key-tokens';
import { type Key, statusOf, STATUS_TONES } from './key';

const ENDPOINTS: Readonly<Record<Key['endpoints'], string>> = {
  inference: 'inference only',
  own: 'all at providers of the team, inference elsewhere',
  all: 'all',
};

/** One key: what it may do, what it used, and what can be done with it. */
export function KeyDrawer({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const query = useQuery({
    queryKey: ['key', id],
    queryFn: ({ signal }) => api.get('/admin/v1/keys/{id}', { path: { id: id ?? '' }, signal }),
    enabled: id !== undefined,
  });
  const key = query.data;
  return (
    <SideDrawer
      opened={id !== undefined}
      onClose={onClose}
      title={key === undefined ? 'Key' : `${key.team} / ${key.name}`}
    >
      {key !== undefined ? (
        <Details shown={key} />
      ) : query.error !== null ? (
        <ErrorAlert error={query.error} retry={() => void query.refetch()} />
      ) : (
        <LoadingRows />
      )}
    </SideDrawer>
  );
}

function Details({ shown }: { shown: Key }) {
  const isMember = useIsMember();
  const [url] = useUrlState();
  const teams = useQuery(teamsQuery).data?.rows;
  const team = teams?.find(({ id }) => id === shown.team_id);
  const isTeamDisabled = team?.disabled === true;
  const status = statusOf(shown, isTeamDisabled, new Date());
  const limits = useQuery({
    queryKey: ['limits', 'key', shown.id],
    queryFn: ({ signal }) => api.get('/admin/v1/limits', { query: { key: shown.id, limit: 100 }, signal }),
  });
  return (
    <Stack gap="md">
      <Actions shown={shown} status={status} />
      <Facts
        facts={[
          [
            'Status',
            <Group gap="xs" component="span">
              <StatusBadge tone={STATUS_TONES[status]}>{status}</StatusBadge>
              {status === 'disabled' && isTeamDisabled && 'its team is disabled'}
            </Group>,
          ],
          [
            'Team',
            <PageLink to="/teams" search={{ ...sharedState(url), open: shown.team_id }} size="sm">
              {shown.team}
            </PageLink>,
          ],
          ...annotationFacts(shown, team),
          [
            'Secret begins with',
            shown.prefix === null ? 'no secret' : <CopyableId id={shown.prefix} what="start of the secret" />,
          ],
          ['Last used', <RelativeTime at={shown.last_used_at} empty="never" />],
          ['Created', <ExactTime at={shown.created_at} />],
          [
            'Expires',
            shown.expires_at === null ? (
              'never'
            ) : (
              <>
                <ExactTime at={shown.expires_at} /> (<RelativeTime at={shown.expires_at} />)
              </>
            ),
          ],
          [
            'With sign-ins',
            shown.latest_expiry === null ? undefined : (
              <>
                each sign-in of its owner moves the expiry, until <ExactTime at={shown.latest_expiry} />
              </>
            ),
          ],
          [
            'Old secret',
            shown.previous_secret_expires_at === null ? undefined : (
              <>
                works until it ends <RelativeTime at={shown.previous_secret_expires_at} />
              </>
            ),
          ],
          ['Revoked', shown.revoked_at === null ? undefined : <ExactTime at={shown.revoked_at} />],
          ['Providers', shown.providers === null ? 'all' : shown.providers.join(', ')],
          ['Endpoints', ENDPOINTS[shown.endpoints]],
          ...modelFacts(shown),
          ['Idempotency-Key', shown.idempotency === 'replay' ? 'repeats stored responses' : undefined],
          ['WebSockets', shown.websockets ? 'allowed' : undefined],
          [
            'Client disconnects',
            shown.on_disconnect === null
              ? undefined
              : shown.on_disconnect === 'finish'
                ? 'the call is finished'
                : 'the call is cancelled',
          ],
          [
            'Response cache',
            shown.cache === null
              ? undefined
              : `${duration(shown.cache.ttl_seconds * 1_000)}${shown.cache.shared === 'team' ? ', shared with keys of its team' : ''}`,
          ],
          ['Key ID', <CopyableId id={shown.id} what="key ID" short />],
        ]}
      />
      <KeyTokens shown={shown} />
      <Divider />
      <Group justify="space-between">
        <Title order={3} size="h5">
          Limits of this key
        </Title>
        <Group gap="md">
          <PageLink to="/limits" search={{ ...sharedState(url), key: shown.id }} size="sm">
            On the page Limits
          </PageLink>
          {!isMember && (
            <PageLink to="/audit" search={{ tz: url.tz, range: '90d', subject_id: shown.id }} size="sm">
              Its changes
            </PageLink>
          )}
        </Group>
      </Group>
      <ErrorAlert error={limits.error} />
      {limits.data !== undefined &&
        (limits.data.data.length === 0 ? (
          <TeamLimits team={team} />
        ) : (
          <LimitList limits={limits.data.data} />
        ))}
      <Divider />
      <Group justify="space-between">
        <Title order={3} size="h5">
          Usage
        </Title>
        <PageLink to="/requests" search={{ ...withRange(url, '30d'), key: shown.id }} size="sm">
          Show its requests
        </PageLink>
      </Group>
      <OwnUsage filter={{ key: shown.id }} by="model" />
    </Stack>
  );
}

/** What applies to a key without limits of its own. */
function TeamLimits({ team }: { team: Team | undefined }) {
  const [url] = useUrlState();
  if (team === undefined) return <Text size="sm">None of its own.</Text>;
  const { limits, budgets, filtered_limits: filtered, each_end_user: user, each_session: session } = team;
  if ([limits, user, session].every((one) => one === null) && budgets.length + filtered.length === 0)
    return <Text size="sm">None: neither the key nor its team has limits or budgets.</Text>;
  return (
    <Text size="sm">
      None of its own. Those of its team apply:{' '}
      <PageLink to="/limits" search={{ ...sharedState(url), team: team.name }} size="sm">
        show them
      </PageLink>
    </Text>
  );
}

function Actions({ shown, status }: { shown: Key; status: string }) {
  const [url, setUrl] = useUrlState();
  const isAdmin = useMayChange();
  const leads = useLeads();
  const mayChange = isAdmin || leads;
  const path = { id: shown.id };
  const disable = useSave(
    () => api.patch('/admin/v1/keys/{id}', { path, body: { disabled: !shown.disabled }, shown }),
    KEY_LISTS,
  ).form;
  const isOwn = useIsOwn()(shown);
  const isOfSignIns = shown.origin === 'sign_in';
  // Others have tokens only: those of sign-ins, or of a trust.
  const hasSecrets = shown.prefix !== null;
  if (!(mayChange || isOwn) || status === 'revoked') return null;
  return (
    <>
      <Group gap="xs">
        {mayChange && (
          <DialogButton label="Edit" opened={url.edit !== undefined}>
            {(close) => (
              <EditKey
                shown={shown}
                raised={url.edit}
                onClose={() => {
                  close();
                  setUrl({ edit: undefined }, { replace: true });
                }}
              />
            )}
          </DialogButton>
        )}
        {hasSecrets && (
          <DialogButton label="Rotate" variant="default">
            {(close) => <RotateKey shown={shown} onClose={close} />}
          </DialogButton>
        )}
        {(isAdmin || (leads && !shown.disabled)) && (
          <Button size="xs" variant="default" onClick={disable.onSubmit} loading={disable.pending}>
            {shown.disabled ? 'Enable' : 'Disable'}
          </Button>
        )}
        <RemoveAction
          verb="Revoke"
          what="key"
          name={shown.name}
          remove={() => api.post('/admin/v1/keys/{id}/revoke', { path, body: {}, shown })}
          lists={KEY_LISTS}
        >
          {hasSecrets
            ? 'All its secrets stop working at once, and for ever. Calls with it get 401.'
            : isOfSignIns
              ? 'All its tokens stop working at once, and its owner cannot sign in to this team any more, until an administrator lets them in again.'
              : 'All its tokens stop working at once, and no trust issues any for it.'}{' '}
          Its usage stays in the log. To stop it for a while, disable it instead.
        </RemoveAction>
      </Group>
      <ErrorAlert error={disable.error} />
    </>
  );
}

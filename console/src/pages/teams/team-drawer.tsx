import { Anchor, Divider, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { addressOf } from '../../api/address';
import { limitsQuery } from '../../api/load-all';
import { useIsMember, useLeads, useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { Facts } from '../../display/facts';
import { PageButton, PageLink } from '../../display/links';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime } from '../../figures/figure';
import { annotationFacts } from '../../forms/annotation-fields';
import { DialogButton } from '../../forms/dialog-button';
import { modelFacts } from '../../limits/limit-facts';
import { LimitList } from '../../limits/limit-list';
import { addPeriods, civilOf, startOf } from '../../url/calendar';
import { useTimeZone } from '../../url/time-zone';
import { sharedState, useUrlState, withRange } from '../../url/url-state';
import { OwnUsage } from '../../usage/own-usage';
import { Accounts } from './accounts';
import { ClientSetup } from './client-setup';
import type { Team } from './team';
import { TeamForm } from './team-form';

/** One team: what it may do and what it used. */
export function TeamDrawer({ shown, onClose }: { shown: Team | undefined; onClose: () => void }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={onClose} title={shown?.name ?? 'Team'}>
      {shown !== undefined && <Details shown={shown} />}
    </SideDrawer>
  );
}

function Details({ shown }: { shown: Team }) {
  const [url, setUrl] = useUrlState();
  const isAdmin = useMayChange();
  const leads = useLeads();
  const mayChange = leads || isAdmin;
  const isMember = useIsMember();
  const seesProviders = leads || !isMember;
  const limits = useQuery(limitsQuery).data?.rows.filter(({ owner_id }) => owner_id === shown.id);
  const search = { ...sharedState(url), team: shown.name };
  return (
    <Stack gap="md">
      <Group gap="xs">
        {mayChange && (
          <DialogButton label="Edit" opened={url.edit !== undefined}>
            {(close) => {
              const leave = () => {
                close();
                setUrl({ edit: undefined }, { replace: true });
              };
              return <TeamForm shown={shown} raised={url.edit} onClose={leave} onSaved={leave} />;
            }}
          </DialogButton>
        )}
        <PageButton size="xs" variant="default" to="/keys" search={search}>
          Show its keys
        </PageButton>
        {mayChange && (
          <PageButton size="xs" variant="default" to="/keys" search={{ ...search, new: '1' }}>
            Create key
          </PageButton>
        )}
      </Group>
      <Facts
        facts={[
          [
            'Status',
            <StatusBadge tone={shown.disabled ? 'warning' : 'good'}>
              {shown.disabled ? 'disabled' : 'active'}
            </StatusBadge>,
          ],
          ['Group', shown.group ?? undefined],
          ...annotationFacts(shown),
          ...modelFacts(shown),
          ['Providers', shown.providers?.join(', ')],
          ['Default provider', shown.default_provider ?? undefined],
          ['Keys of members', ownKeys(shown)],
          ['Sign-in from clients', signIn(shown)],
          ['Created', <ExactTime at={shown.created_at} />],
          ['Team ID', <CopyableId id={shown.id} what="team ID" short />],
        ]}
      />
      {seesProviders && (
        <>
          <Divider />
          <Accounts shown={shown} />
        </>
      )}
      {shown.sign_in !== null && !isMember && (
        <>
          <Divider />
          <ClientSetup team={shown} />
        </>
      )}
      <Divider />
      <Group justify="space-between">
        <Title order={3} size="h5">
          Limits of this team
        </Title>
        <Group gap="md">
          <PageLink to="/limits" search={{ ...sharedState(url), team: shown.id }} size="sm">
            With those of its keys
          </PageLink>
          {!isMember && (
            <PageLink to="/audit" search={{ tz: url.tz, range: '90d', subject_id: shown.id }} size="sm">
              Its changes
            </PageLink>
          )}
        </Group>
      </Group>
      {limits !== undefined &&
        (limits.length === 0 ? <Text size="sm">None of its own.</Text> : <LimitList limits={limits} />)}
      <Divider />
      <Group justify="space-between">
        <Title order={3} size="h5">
          Usage
        </Title>
        <Group gap="md">
          <Statements team={shown.id} />
          <PageLink to="/requests" search={{ ...withRange(url, '30d'), team: shown.name }} size="sm">
            Show its requests
          </PageLink>
        </Group>
      </Group>
      <OwnUsage filter={{ team: shown.name }} by="key" />
    </Stack>
  );
}

/** Its statements as files for spreadsheets: of the month that is over, and of this one so far. */
function Statements({ team }: { team: string }) {
  const zone = useTimeZone();
  const [last, current] = [-1, 0].map((months) => {
    const { year, month } = civilOf(
      addPeriods('month', startOf('month', new Date(), zone), months, zone),
      zone,
    );
    return `${year}-${String(month).padStart(2, '0')}`;
  });
  return [last, current].map((month) => (
    <Anchor
      key={month}
      size="sm"
      href={addressOf('/admin/v1/usage/statement', { team, month, tz: zone, format: 'csv' })}
      download
      title={`What the team used in ${month} (${zone}), by key, provider and model, as CSV`}
    >
      Statement {month}
    </Anchor>
  ));
}

/** What members may have, in one line; nothing if they may create no key. */
function ownKeys({ self_service: allowed }: Team): string | undefined {
  if (allowed === null) return undefined;
  const { keys_per_user, max_days, budget_usd_per_month, providers, sign_in_within_days } = allowed;
  return [
    `${keys_per_user} each, for at most ${max_days} days`,
    ...(sign_in_within_days === null ? [] : [`${sign_in_within_days} days after a sign-in`]),
    ...(budget_usd_per_month === null ? [] : [`$${budget_usd_per_month} a month`]),
    providers === null ? 'all providers' : providers.join(', '),
  ].join('; ');
}

/** What people who sign in have, in one line; nothing if nobody can. */
function signIn({ sign_in: allowed }: Team): string | undefined {
  if (allowed === null) return undefined;
  const { days, token_minutes, budget_usd_per_month, providers } = allowed;
  return [
    `again after ${days} days, tokens of ${token_minutes} minutes`,
    ...(budget_usd_per_month === null ? [] : [`$${budget_usd_per_month} a month each`]),
    providers === null ? 'all providers' : providers.join(', '),
  ].join('; ');
}

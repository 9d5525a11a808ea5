import { Button, Divider, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { SideDrawer } from '../../display/side-drawer';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime, RelativeTime } from '../../figures/figure';
import { counted } from '../../figures/numbers';
import { RemoveAction } from '../../forms/remove-action';
import { useSave } from '../../forms/use-save';
import { sharedState, useUrlState } from '../../url/url-state';
import { END_REASONS, PEOPLE_LISTS, type ShownPerson, type SignIn, stateOf } from './person';

const REFRESH_MS = 10_000;

/** One person: what they have, and their end. */
export function PersonDrawer({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const query = useQuery({
    queryKey: ['people', 'one', id],
    queryFn: ({ signal }) => api.get('/admin/v1/people/{id}', { path: { id: id ?? '' }, signal }),
    enabled: id !== undefined,
    refetchInterval: REFRESH_MS,
  });
  const person = query.data;
  return (
    <SideDrawer opened={id !== undefined} onClose={onClose} title={person?.name ?? 'Person'}>
      {person !== undefined ? (
        <Details key={person.id} shown={person} />
      ) : query.error !== null ? (
        <ErrorAlert error={query.error} retry={() => void query.refetch()} />
      ) : (
        <LoadingRows />
      )}
    </SideDrawer>
  );
}

function Details({ shown }: { shown: ShownPerson }) {
  const [url] = useUrlState();
  const mayChange = useMayChange();
  const state = stateOf(shown);
  return (
    <Stack gap="md">
      {mayChange && <Actions shown={shown} />}
      <Facts
        facts={[
          [
            'State',
            <Group gap="xs" component="span">
              <StatusBadge tone={state.tone}>{state.label}</StatusBadge>
              {shown.ended_at !== null && <RelativeTime at={shown.ended_at} />}
            </Group>,
          ],
          ['E-mail', shown.email],
          ['First seen', <ExactTime at={shown.created_at} />],
          ['Last sign-in', <RelativeTime at={shown.last_sign_in_at} empty="never" />],
          [
            'Used token sent again',
            shown.spent_refused_at === null ? undefined : (
              <>
                <RelativeTime at={shown.spent_refused_at} />: a second terminal that shares the sign-in, or
                somebody who has copied it
              </>
            ),
          ],
          ...shown.keys.map(
            ({ id, name, origin }) =>
              [
                origin === 'manual' ? 'Own key' : 'Key of sign-ins',
                <PageLink key={id} to="/keys" search={{ ...sharedState(url), key: id }} size="sm">
                  {name}
                </PageLink>,
              ] as const,
          ),
          [
            'Blocked teams',
            shown.blocked_teams.length === 0
              ? undefined
              : `${shown.blocked_teams.join(', ')}: the key of their sign-ins was revoked`,
          ],
          ['Sign-in provider', shown.issuer],
          ['ID there', <CopyableId id={shown.subject} what="ID at the provider" />],
          ['Person ID', <CopyableId id={shown.id} what="person ID" short />],
        ]}
      />
      <Divider />
      <section aria-labelledby="sign-ins">
        <Title order={3} size="h5" id="sign-ins" mb="xs">
          Sign-ins from clients
        </Title>
        {shown.sign_ins.length === 0 && (
          <Text size="sm" c="dimmed">
            None in the last 90 days.
          </Text>
        )}
        <Stack gap="sm">
          {shown.sign_ins.map((signIn) => (
            <Entry key={signIn.id} signIn={signIn} mayEnd={mayChange} />
          ))}
        </Stack>
      </section>
    </Stack>
  );
}

function Entry({ signIn, mayEnd }: { signIn: SignIn; mayEnd: boolean }) {
  const { id, key, surface, client_ip, program, created_at, last_renewed_at, ended_at, end_reason } = signIn;
  const goesOn = ended_at === null && Date.parse(signIn.expires_at) > Date.now();
  const end = useSave(() => api.delete('/admin/v1/sign-ins/{id}', { path: { id } }), PEOPLE_LISTS).form;
  return (
    <div>
      <Group justify="space-between" gap="xs" align="flex-start">
        <Text size="sm" style={{ overflowWrap: 'anywhere', flex: '1 1 200px', minWidth: 0 }}>
          {surface}
          {client_ip !== null && ` at ${client_ip}`}, {key}
        </Text>
        {goesOn && mayEnd && (
          <Button size="compact-xs" variant="default" onClick={end.onSubmit} loading={end.pending}>
            End
          </Button>
        )}
      </Group>
      <Text size="xs" c="dimmed" component="div" style={{ overflowWrap: 'anywhere' }}>
        began <RelativeTime at={created_at} />
        {goesOn ? (
          <>
            , renewed <RelativeTime at={last_renewed_at} />
          </>
        ) : (
          <>
            , ended <RelativeTime at={ended_at ?? signIn.expires_at} />:{' '}
            {end_reason === null ? 'its time was over' : (END_REASONS[end_reason] ?? end_reason)}
          </>
        )}
        {program !== null && `, ${program}`}
      </Text>
      {signIn.spent_refused_at !== null && (
        <Text size="xs" component="div">
          A refresh token that was used before was sent again <RelativeTime at={signIn.spent_refused_at} />.
        </Text>
      )}
      <ErrorAlert error={end.error} />
    </div>
  );
}

function Actions({ shown }: { shown: ShownPerson }) {
  const path = { id: shown.id };
  const reopen = useSave(
    () => api.post('/admin/v1/people/{id}/reopen', { path, body: {} }),
    PEOPLE_LISTS,
  ).form;
  const own = shown.keys.filter(({ origin }) => origin === 'manual').length;
  return (
    <>
      <Group gap="xs">
        {(shown.ended_at !== null || shown.blocked_teams.length > 0) && (
          <Button size="xs" variant="default" onClick={reopen.onSubmit} loading={reopen.pending}>
            Let in again
          </Button>
        )}
        {shown.ended_at === null ? (
          <RemoveAction
            verb="End"
            what="person"
            name={shown.name}
            remove={() => api.post('/admin/v1/people/{id}/end', { path, body: {} })}
            lists={PEOPLE_LISTS}
          >
            They cannot sign in any more. Their sessions of the console and{' '}
            {counted(shown.live_sign_ins, 'sign-in')} from clients end, and {counted(own, 'own key')} are
            revoked for ever. Keys that administrators created for a team stay.
          </RemoveAction>
        ) : (
          <RemoveAction
            verb="Forget"
            what="person"
            name={shown.name}
            remove={() => api.post('/admin/v1/people/{id}/forget', { path, body: {} })}
            lists={PEOPLE_LISTS}
          >
            Their name and e-mail address are removed here, from the names of their keys, the request log, the
            audit log and stored alerts. It cannot be undone. They stay ended.
          </RemoveAction>
        )}
      </Group>
      <ErrorAlert error={reopen.error} />
    </>
  );
}

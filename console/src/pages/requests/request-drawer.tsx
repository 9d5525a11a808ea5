import { Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api } from '../../api/client';
import { CopyableId, Snippet } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { SideDrawer } from '../../display/side-drawer';
import { ExactTime } from '../../figures/figure';
import { bytes } from '../../figures/numbers';
import { memberOf, sharedState, useUrlState } from '../../url/url-state';
import { CallCost } from './call-cost';
import { CallReasons } from './call-reasons';
import { CallResult } from './call-result';
import { CallTimeline } from './call-timeline';
import type { ShownCall } from './call';
import { CallAttempts } from './call-attempts';
import { curlOf } from './curl';

/** Everything about one call, beside the list. Its address holds the ID, so that it can be shared. */
export function RequestDrawer({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const call = useQuery({
    queryKey: ['request', id],
    queryFn: ({ signal }) => api.get('/admin/v1/requests/{id}', { path: { id: id ?? '' }, signal }),
    enabled: id !== undefined,
    staleTime: 30_000,
  });
  return (
    <SideDrawer opened={id !== undefined} onClose={onClose} title="Request">
      {call.error !== null && <ErrorAlert error={call.error} retry={() => void call.refetch()} />}
      {call.data === undefined && call.error === null && <LoadingRows rows={10} />}
      {call.data !== undefined && <Details call={call.data} />}
    </SideDrawer>
  );
}

function Details({ call }: { call: ShownCall }) {
  return (
    <Stack gap="lg">
      <Group gap="sm">
        <CallResult call={call} />
        <Text size="sm">
          <ExactTime at={call.started_at} seconds />
        </Text>
        <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
          {call.method} {call.path ?? '–'}
        </Text>
      </Group>
      <CallReasons call={call} />
      {call.attempts.length > 0 && (
        <Part title={`Attempts (${call.attempts.length})`}>
          <CallAttempts call={call} />
        </Part>
      )}
      <Part title="Timeline">
        <CallTimeline call={call} />
      </Part>
      <Part title="Tokens and cost">
        <CallCost call={call} />
      </Part>
      <Part title="Caller">
        <Facts
          facts={[
            [
              'Team',
              call.team === null ? (
                '–'
              ) : (
                <FilterLink key="team" name="team" value={call.team_id} label={call.team} />
              ),
            ],
            [
              'Key',
              call.key === null ? (
                '–'
              ) : (
                <FilterLink key="key" name="key" value={call.key_id} label={call.key} />
              ),
            ],
            [
              'Subject',
              call.subject && (
                <FilterLink key="subject" name="subject" value={call.subject} label={call.subject} />
              ),
            ],
            [
              'End user',
              call.end_user && (
                <FilterLink key="user" name="end_user" value={call.end_user} label={call.end_user} />
              ),
            ],
            [
              'Session',
              call.session_id && (
                <FilterLink key="session" name="session" value={call.session_id} label={call.session_id} />
              ),
            ],
            [
              'Tags',
              call.tags &&
                Object.entries(call.tags)
                  .map(([name, value]) => `${name}=${value}`)
                  .join(', '),
            ],
            ['Client address', call.client_ip],
            ['User agent', call.user_agent],
            ['SDK retry', call.sdk_retry_count === null ? null : String(call.sdk_retry_count)],
          ]}
        />
      </Part>
      <Part title="Call">
        <Facts
          facts={[
            [
              'Provider',
              <FilterLink key="provider" name="provider" value={call.provider} label={call.provider} />,
            ],
            [
              'Model',
              call.model && <FilterLink key="model" name="model" value={call.model} label={call.model} />,
            ],
            ['Streamed', call.streamed ? 'Yes' : 'No'],
            ['Request body', bytes(call.request_bytes)],
            ['Response body', bytes(call.response_bytes)],
            ['Altered', call.altered],
            ['Request ID', <CopyableId key="id" id={call.id} what="request ID" />],
            [
              'Provider request ID',
              call.provider_request_id && (
                <CopyableId key="pid" id={call.provider_request_id} what="provider request ID" />
              ),
            ],
            [
              'Idempotency key',
              call.idempotency_key && (
                <CopyableId key="ik" id={call.idempotency_key} what="idempotency key" />
              ),
            ],
          ]}
        />
      </Part>
      <Part title="Repeat it">
        <Text size="sm" c="dimmed" mb="xs">
          Bodies are not stored. Put your own message in.
        </Text>
        <Snippet text={curlOf(call)} what="curl command" />
      </Part>
    </Stack>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={2} mb="xs">
        {title}
      </Title>
      {children}
    </section>
  );
}

type FilterName = 'team' | 'key' | 'provider' | 'model' | 'end_user' | 'session' | 'subject';

/** Leads to the list with this filter. */
function FilterLink({ name, value, label }: { name: FilterName; value: string; label: string }) {
  const [url] = useUrlState();
  return (
    <PageLink
      to="/requests"
      search={{ ...sharedState(url), ...memberOf(name, value) }}
      size="sm"
      title={`Requests with this ${name.replace('_', ' ')}`}
    >
      {label}
    </PageLink>
  );
}

import { Divider, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useIsMember } from '../../app/session';
import { ErrorAlert } from '../../display/error-alert';
import { PageLink } from '../../display/links';
import { RelativeTime } from '../../figures/figure';
import { sharedState, useUrlState } from '../../url/url-state';
import type { Key } from './key';

const REFRESH_MS = 10_000;
const SHOWN = 20;

/** Which trusts issue tokens of a key, and the tokens that work now; nothing for a key without either. */
export function KeyTokens({ shown }: { shown: Key }) {
  const [url] = useUrlState();
  const isMember = useIsMember();
  const tokens = useQuery({
    queryKey: ['key-tokens', shown.id],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/keys/{id}/tokens', { path: { id: shown.id }, query: { limit: SHOWN }, signal }),
    refetchInterval: REFRESH_MS,
  });
  if (tokens.error !== null) return <ErrorAlert error={tokens.error} />;
  if (tokens.data === undefined) return null;
  const { trusts, data, next_cursor: more } = tokens.data;
  if (trusts.length + data.length === 0) return null;
  return (
    <section aria-labelledby="tokens">
      <Divider mb="md" />
      <Group justify="space-between" mb="xs">
        <Title order={3} size="h5" id="tokens">
          Tokens now
        </Title>
        {trusts.length > 0 && !isMember && (
          <PageLink to="/trusts" search={sharedState(url)} size="sm">
            On the page Trusts
          </PageLink>
        )}
      </Group>
      <Stack gap="xs">
        {trusts.map(({ name, last_used_at }) => (
          <Text key={name} size="sm" style={{ overflowWrap: 'anywhere' }}>
            Trust {name}: last used <RelativeTime at={last_used_at} empty="never" />
          </Text>
        ))}
        {data.map(({ id, subject, expires_at, last_used_at }) => (
          <div key={id}>
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {subject}
            </Text>
            <Text size="xs" c="dimmed">
              ends <RelativeTime at={expires_at} />, last used{' '}
              <RelativeTime at={last_used_at} empty="never" />
            </Text>
          </div>
        ))}
        {data.length === 0 && !isMember && (
          <Text size="sm" c="dimmed">
            None works now.
          </Text>
        )}
        {more !== null && (
          <Text size="xs" c="dimmed">
            These are the newest {SHOWN}.
          </Text>
        )}
      </Stack>
    </section>
  );
}

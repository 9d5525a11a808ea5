import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { PageLink } from '../../display/links';
import { LoadingRows } from '../../display/loading';
import { Section } from '../../display/section';
import { byUrgency, isBudget, limitAmount, limitOwner, limitShares, limitTitle } from '../../limits/limit';
import { LimitBar } from '../../limits/limit-bar';
import { sharedState, useUrlState } from '../../url/url-state';

const NEARLY_USED = 0.8;
const SHOWN = 5;

/** Budgets that reject calls, or of which more than 80 % is used. */
export default function Budgets() {
  const [url] = useUrlState();
  const limits = useQuery({
    queryKey: ['limits', 'most used'],
    queryFn: ({ signal }) => api.get('/admin/v1/limits', { query: { limit: 500 }, signal }),
    refetchInterval: 30_000,
  });
  const budgets = limits.data?.data.filter(isBudget);
  const nearlyUsed = budgets
    ?.filter((limit) => limitShares(limit).used >= NEARLY_USED || limit.state === 'blocking')
    .sort(byUrgency);
  return (
    <Section
      title="Budgets over 80%"
      h="100%"
      actions={
        <PageLink to="/limits" search={sharedState(url)} size="sm">
          All limits
        </PageLink>
      }
    >
      {limits.error !== null && <ErrorAlert error={limits.error} retry={() => void limits.refetch()} />}
      {nearlyUsed === undefined && limits.error === null && <LoadingRows rows={4} />}
      {nearlyUsed?.length === 0 &&
        (budgets?.length === 0 ? (
          <EmptyState
            title="No budget is set"
            action={
              <PageLink to="/teams" search={sharedState(url)} underline="always">
                Set a budget on a team
              </PageLink>
            }
          />
        ) : (
          <EmptyState title="All budgets are below 80%" />
        ))}
      <Stack gap="sm">
        {nearlyUsed?.slice(0, SHOWN).map((limit) => (
          <div key={limit.id}>
            <Group justify="space-between" gap="0 var(--mantine-spacing-xs)" mb={4}>
              <Text size="sm" truncate="end">
                {limitOwner(limit)}{' '}
                <Text span c="dimmed" size="sm">
                  {limitTitle(limit).toLowerCase()}
                </Text>
              </Text>
              <Text size="sm" style={{ whiteSpace: 'nowrap' }}>
                {limitAmount(limit, limit.used)} of {limitAmount(limit, limit.amount)}
              </Text>
            </Group>
            <LimitBar limit={limit} />
          </div>
        ))}
      </Stack>
      {(nearlyUsed?.length ?? 0) > SHOWN && (
        <Text size="sm" c="dimmed" mt="sm">
          and {(nearlyUsed?.length ?? 0) - SHOWN} more
        </Text>
      )}
    </Section>
  );
}

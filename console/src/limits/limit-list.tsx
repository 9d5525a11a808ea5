import { Group, Stack, Text } from '@mantine/core';
import { RelativeTime } from '../figures/figure';
import { blockedText, byUrgency, leftOutText, type Limit, limitAmount, limitTitle } from './limit';
import { LimitBar } from './limit-bar';

function ownerKind({ group, team, key }: Limit): string {
  if (key !== null) return 'This key';
  if (team !== null) return 'Team';
  return group === null ? 'All calls' : 'Group';
}

/** Limits with what is used of them, the most urgent first. `owners`: they are of a team and of one of its keys. */
export function LimitList({ limits, owners = false }: { limits: readonly Limit[]; owners?: boolean }) {
  return (
    <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
      {[...limits].sort(byUrgency).map((limit) => (
        <li key={limit.id}>
          <Group justify="space-between" gap="xs" mb={2}>
            <Text size="sm">
              {owners && `${ownerKind(limit)}: `}
              {limitTitle(limit)}
            </Text>
            <Text size="sm" c="dimmed">
              {limitAmount(limit, limit.used)} of {limitAmount(limit, limit.amount)}
            </Text>
          </Group>
          <LimitBar limit={limit} />
          <Text size="xs" c="dimmed" mt={2}>
            {leftOutText(limit)}
          </Text>
          <Text size="xs" c="var(--postern-bad)" mt={2}>
            {blockedText(limit)}
          </Text>
          {limit.resets_at !== null && (
            <Text size="xs" c="dimmed" mt={2}>
              {limitAmount(limit, limit.left)} left, resets <RelativeTime at={limit.resets_at} />
            </Text>
          )}
        </li>
      ))}
    </Stack>
  );
}

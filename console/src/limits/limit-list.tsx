import { Group, Stack, Text } from '@mantine/core';
import { RelativeTime } from '../figures/figure';
import { byUrgency, type Limit, limitAmount, limitTitle } from './limit';
import { LimitBar } from './limit-bar';

/** Limits of one team or key with what is used of them, the most urgent first. */
export function LimitList({ limits }: { limits: readonly Limit[] }) {
  return (
    <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
      {[...limits].sort(byUrgency).map((limit) => (
        <li key={limit.id}>
          <Group justify="space-between" gap="xs" mb={2}>
            <Text size="sm">{limitTitle(limit)}</Text>
            <Text size="sm" c="dimmed">
              {limitAmount(limit, limit.used)} of {limitAmount(limit, limit.amount)}
            </Text>
          </Group>
          <LimitBar limit={limit} />
          {limit.resets_at !== null && (
            <Text size="xs" c="dimmed" mt={2}>
              {limitAmount(limit, limit.left)} left, begins anew <RelativeTime at={limit.resets_at} />
            </Text>
          )}
        </li>
      ))}
    </Stack>
  );
}

import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { ErrorAlert } from '../../display/error-alert';
import { WarningIcon } from '../../display/icons';
import { count } from '../../figures/numbers';
import { shortTime } from '../../figures/times';
import { useTimeZone } from '../../url/time-zone';
import type { Missing } from './price';

/** Models that were called lately and have no price: their cost is unknown. Nothing if there is none. */
export function MissingPrices({ onPrice }: { onPrice: (missing: Missing) => void }) {
  const mayChange = useMayChange();
  const zone = useTimeZone();
  const { data, error, refetch } = useQuery({
    queryKey: ['prices', 'missing'],
    queryFn: ({ signal }) => api.get('/admin/v1/prices/missing', { signal }),
  });
  if (error !== null) return <ErrorAlert error={error} retry={() => void refetch()} />;
  if (data === undefined || data.data.length === 0) return null;
  return (
    <Paper withBorder p="md" mb="md" component="section" aria-labelledby="missing-prices">
      <Group gap="xs" mb="xs" wrap="nowrap" c="var(--postern-warning)">
        <WarningIcon />
        <Title order={2} id="missing-prices">
          {data.data.length === 1 ? 'A model without a price' : `${data.data.length} models without a price`}
        </Title>
      </Group>
      <Text size="sm" c="dimmed" mb="sm">
        Called since {shortTime(new Date(data.from), zone)}. The cost of these calls is unknown, and missing
        from all sums.
      </Text>
      <Stack gap={6} component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
        {data.data.map((missing) => (
          <Group
            key={`${missing.provider} ${missing.model}`}
            component="li"
            justify="space-between"
            gap="xs"
            style={{ borderTop: '1px solid var(--mantine-color-default-border)', paddingTop: 6 }}
          >
            <span style={{ flex: '1 1 14rem', minWidth: 0, overflowWrap: 'anywhere' }}>
              <Text span fw={600} size="sm">
                {missing.model}
              </Text>{' '}
              <Text span size="sm" c="dimmed">
                of {missing.provider}, {missing.calls === 1 ? '1 call' : `${count(missing.calls)} calls`},
                last on {missing.last_day}
              </Text>
            </span>
            {mayChange && (
              <Button size="xs" variant="default" flex="none" onClick={() => onPrice(missing)}>
                Set its price
              </Button>
            )}
          </Group>
        ))}
      </Stack>
    </Paper>
  );
}

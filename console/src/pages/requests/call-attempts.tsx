import { Table, Text } from '@mantine/core';
import { PageLink } from '../../display/links';
import { duration } from '../../figures/numbers';
import type { ShownCall } from './call';
import { CallResult } from './call-result';
import { reasonsOf } from './reasons';

/** The attempts of a call by a route: to which provider it was sent, and what came of it. */
export function CallAttempts({ call }: { call: ShownCall }) {
  return (
    <Table verticalSpacing={4} aria-label="Attempts">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Attempt</Table.Th>
          <Table.Th>Provider</Table.Th>
          <Table.Th>Result</Table.Th>
          <Table.Th ta="right">Ended after</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {call.attempts.map(({ id, attempt, provider, duration_ms, ...result }) => (
          <Table.Tr key={id} aria-current={id === call.id ? 'true' : undefined}>
            <Table.Td>{attempt}</Table.Td>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>
              {id === call.id ? (
                <Text span size="sm" fw={600}>
                  {provider}
                </Text>
              ) : (
                <PageLink
                  to="/requests"
                  search={(shown) => ({ ...shown, id })}
                  size="sm"
                  title={`Show attempt ${attempt}`}
                >
                  {provider}
                </PageLink>
              )}
            </Table.Td>
            <Table.Td>
              <CallResult call={result} />
              <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                {reasonsOf(result)
                  .map(({ token }) => token)
                  .join(', ')}
              </Text>
            </Table.Td>
            <Table.Td ta="right">{duration(duration_ms)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

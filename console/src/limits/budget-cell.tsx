import { Text } from '@mantine/core';
import { type Limit, limitAmount, limitTitle } from './limit';
import { LimitBar } from './limit-bar';

/** The budget of a team or key that matters most, in a table. */
export function BudgetCell({ limit }: { limit: Limit | undefined }) {
  if (limit === undefined) {
    return (
      <Text span c="dimmed" size="sm">
        none
      </Text>
    );
  }
  return (
    <span style={{ display: 'block', minWidth: '11.5rem' }} title={limitTitle(limit)}>
      <LimitBar limit={limit} />
      <Text span size="xs" c="dimmed">
        {limitAmount(limit, limit.used)} of {limitAmount(limit, limit.amount)}{' '}
        {limitTitle(limit).replace(/^\S+ /, '')}
      </Text>
    </span>
  );
}

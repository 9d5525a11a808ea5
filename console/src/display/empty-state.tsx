import { Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** What is shown instead of an empty list: why it is empty, and the one next thing to do. */
export function EmptyState({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Stack align="center" gap={6} py="xl" px="md" data-empty-state="">
      <Text fw={600} ta="center">
        {title}
      </Text>
      {children !== undefined && (
        <Text c="dimmed" size="sm" ta="center" maw={480} component="div">
          {children}
        </Text>
      )}
      {action !== undefined && <div style={{ marginTop: 8 }}>{action}</div>}
    </Stack>
  );
}

import { Group, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';

/** The one h1 of a page, what the page is for, and its controls on the right. */
export function PageHeader({
  title,
  description,
  children,
}: {
  title: string;
  description?: ReactNode;
  children?: ReactNode;
}) {
  useDocumentTitle(`${title} · Postern`);
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="sm">
      <div style={{ flex: '1 1 18rem' }}>
        <Title order={1}>{title}</Title>
        {description !== undefined && (
          <Text c="dimmed" size="sm" component="div" maw={640}>
            {description}
          </Text>
        )}
      </div>
      {children !== undefined && (
        <Group gap="xs" wrap="wrap">
          {children}
        </Group>
      )}
    </Group>
  );
}

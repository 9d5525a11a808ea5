import { Group, Paper, type PaperProps, Title } from '@mantine/core';
import { type ReactNode, useId } from 'react';

/** A part of a page with a heading of its own. */
export function Section({
  title,
  actions,
  children,
  ...paper
}: { title: ReactNode; actions?: ReactNode; children: ReactNode } & PaperProps) {
  const id = useId();
  return (
    <Paper component="section" aria-labelledby={id} withBorder p="md" {...paper}>
      <Group justify="space-between" mb="sm" gap="xs">
        <Title order={2} id={id}>
          {title}
        </Title>
        {actions}
      </Group>
      {children}
    </Paper>
  );
}

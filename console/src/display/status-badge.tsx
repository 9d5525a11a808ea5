import { Badge } from '@mantine/core';

/** The tone of a badge. The text says the same, so that nothing depends on colour alone. */
export type Tone = 'good' | 'warning' | 'bad' | 'neutral';
const COLORS: Record<Tone, string> = {
  good: 'var(--postern-good)',
  warning: 'var(--postern-warning)',
  bad: 'var(--postern-bad)',
  neutral: 'var(--mantine-color-dimmed)',
};

export function StatusBadge({ tone, children }: { tone: Tone; children: string }) {
  return (
    <Badge
      variant="outline"
      tt="none"
      radius="sm"
      fw={600}
      styles={{
        root: { color: COLORS[tone], borderColor: COLORS[tone], background: 'transparent' },
        label: { overflow: 'visible' },
      }}
    >
      {children}
    </Badge>
  );
}

import type { ReactNode } from 'react';
import classes from './status-badge.module.css';

/** The tone of a badge. The text says the same, so that nothing depends on colour alone. */
export type Tone = 'good' | 'warning' | 'bad' | 'neutral';

export function StatusBadge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={classes.badge} data-tone={tone}>
      {children}
    </span>
  );
}

import type { ReactNode } from 'react';
import classes from './bar-list.module.css';

export interface BarItem {
  id: string;
  label: ReactNode;
  value: ReactNode;
  /** What the value leaves out, below it. */
  note?: ReactNode;
  /** Length of the bar, 0 to 1. */
  share: number;
}

/** A ranking: names with bars behind them and figures on the right. */
export function BarList({ items, label }: { items: readonly BarItem[]; label: string }) {
  return (
    <ul className={classes.list} aria-label={label}>
      {items.map(({ id, label: name, value, note, share }) => (
        <li key={id} className={classes.item}>
          <span
            className={classes.bar}
            style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }}
            aria-hidden="true"
          />
          <span className={classes.label}>{name}</span>
          <span className={classes.value}>{value}</span>
          {note !== undefined && <div className={classes.note}>{note}</div>}
        </li>
      ))}
    </ul>
  );
}

import type { ReactNode } from 'react';
import classes from './facts.module.css';

/** Names and values below each other. Those without a value are left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={classes.list}>
      {facts.map(([name, value]) =>
        value === undefined || value === null || value === '' ? null : (
          <div key={name} className={classes.row}>
            <dt className={classes.name}>{name}</dt>
            <dd className={classes.value}>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

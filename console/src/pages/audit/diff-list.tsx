import { VisuallyHidden } from '@mantine/core';
import classes from './diff.module.css';
import type { DiffLine } from './diff';

/** Before and after, field by field. */
export function DiffList({ lines }: { lines: readonly DiffLine[] }) {
  return (
    <dl className={classes.diff}>
      {lines.map(({ field, before, after }) => (
        <div key={field} className={classes.line}>
          <dt className={classes.field}>{field}</dt>
          <dd className={classes.sides}>
            {before !== undefined && (
              <del className={classes.before}>
                <VisuallyHidden>before: </VisuallyHidden>
                <span aria-hidden="true">{'−\u00a0'}</span>
                {before}
              </del>
            )}
            {before !== undefined && after !== undefined && <br />}
            {after !== undefined && (
              <ins className={classes.after}>
                <VisuallyHidden>after: </VisuallyHidden>
                <span aria-hidden="true">{'+\u00a0'}</span>
                {after}
              </ins>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

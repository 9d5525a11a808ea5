import { VisuallyHidden } from '@mantine/core';
import classes from './diff.module.css';
import { type AuditEntry, diffOf } from './diff';

/** More lines are shown only when they are asked for. */
const MAX_SHOWN = 6;

/** Before and after, field by field. */
export function DiffList({ entry }: { entry: AuditEntry }) {
  const lines = diffOf(entry);
  if (lines.length === 0) return null;
  const list = (
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
  if (lines.length <= MAX_SHOWN) return list;
  return (
    <details>
      <summary className={classes.summary}>Show {lines.length} values</summary>
      {list}
    </details>
  );
}

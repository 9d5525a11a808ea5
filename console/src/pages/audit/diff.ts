import type { ResponseOf } from '../../api/client';

export type AuditEntry = ResponseOf<'/admin/v1/audit', 'get'>['data'][number];

export interface DiffLine {
  field: string;
  before: string | undefined;
  after: string | undefined;
}

/** What an entry changed, field by field. A missing side was not there. */
export function diffOf({ before, after }: Pick<AuditEntry, 'before' | 'after'>): DiffLine[] {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return fields.map((field) => ({ field, before: textOf(before, field), after: textOf(after, field) }));
}

function textOf(side: AuditEntry['before'], field: string): string | undefined {
  if (side === null || !(field in side)) return undefined;
  const value = (side as Record<string, unknown>)[field];
  // Spaces, so that long values break between members.
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
}

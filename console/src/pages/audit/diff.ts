import type { ResponseOf } from '../../api/client';
import { count } from '../../figures/numbers';

export type AuditEntry = ResponseOf<'/admin/v1/audit', 'get'>['data'][number];

export interface DiffLine {
  field: string;
  before: string | undefined;
  after: string | undefined;
}

/** What an entry changed, field by field. A missing side was not there. What a new object does not have is left out. */
export function diffOf({ before, after }: Pick<AuditEntry, 'before' | 'after'>): DiffLine[] {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return fields
    .map((field) => ({ field, before: textOf(before, field), after: textOf(after, field) }))
    .filter((line) => [line.before, line.after].some((side) => side !== undefined && side !== NONE));
}

const NONE = 'none';

function textOf(side: AuditEntry['before'], field: string): string | undefined {
  if (side === null || !(field in side)) return undefined;
  const value = (side as Record<string, unknown>)[field];
  return readable(value);
}

/** A value as people write it: "usd: 250.00, period: month", "80, 100"; members that are not set are left out. */
function readable(value: unknown): string {
  if (value === null) return NONE;
  if (typeof value !== 'object') return typeof value === 'number' ? count(value) : String(value);
  if (Array.isArray(value)) {
    if (value.length === 0) return NONE;
    const hasObjects = value.some((item) => typeof item === 'object' && item !== null);
    return value.map(readable).join(hasObjects ? '; ' : ', ');
  }
  const members = Object.entries(value).filter(([, member]) => member !== null);
  if (members.length === 0) return NONE;
  return members
    .map(([name, member]) => `${name}: ${Array.isArray(member) ? `[${readable(member)}]` : readable(member)}`)
    .join(', ');
}

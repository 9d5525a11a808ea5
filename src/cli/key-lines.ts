import type { KeyView } from '../keys/keys.schema.js';
import { type Cell, shortTime, table } from './table.js';

/** A key in lines for people. */
export function keyLines(key: KeyView & { status: string }): string {
  const lines: [string, Cell][] = [
    ['id', key.id],
    ['name', key.name],
    ['team', key.team],
    ['status', key.status],
    ['prefix', key.prefix],
    ['created', shortTime(key.created_at)],
    ['expires', shortTime(key.expires_at)],
    ['last used', shortTime(key.last_used_at)],
    ['endpoints', key.endpoints],
    ['providers', key.providers?.join(',') ?? 'all'],
    ['idempotency', key.idempotency],
  ];
  return table(null, lines);
}

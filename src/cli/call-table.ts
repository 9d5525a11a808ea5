import type { RequestView } from '../requests/request-view.js';
import { type Cell, shortTime } from './table.js';

/** A call in a line for people: the columns of list and tail. */
export const CALL_HEAD = ['STARTED', 'STATUS', 'OUTCOME', 'CALL', 'PROVIDER', 'MODEL', 'TOKENS', 'MS', 'ID'];

/** Widths that most calls keep to: what is followed line by line cannot know the longest cell. */
export const CALL_WIDTHS = [20, 6, 16, 26, 8, 20, 9, 6, 36];

export function callCells(row: RequestView): readonly Cell[] {
  const { prompt_tokens: prompt, completion_tokens: completion } = row;
  return [
    shortTime(row.started_at),
    row.status,
    row.outcome,
    `${row.method} ${row.path ?? '-'}`,
    row.provider,
    row.model,
    prompt === null && completion === null ? null : `${prompt ?? '-'}+${completion ?? '-'}`,
    row.duration_ms && Math.round(row.duration_ms),
    row.id,
  ];
}

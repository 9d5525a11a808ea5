import { Injectable } from '@nestjs/common';
import type { Page, PageRequest } from '../database/page.js';
import { ReaderPool } from '../requests/reader-pool.js';
import type { RequestFilter } from '../requests/request-query.js';
import { percentile } from './latency.js';
import type { UsageView } from './usage.schema.js';
import { TAG_GROUP, type UsageGroup } from './usage-groups.js';
import { cursorOf, inOrder, memberOf, usageSql } from './usage-query.js';
import { fitsSlots, rowsSource, slotsSource } from './usage-source.js';

/** A group without the names of its team and key. */
export type UsageRow = Omit<UsageView, 'team' | 'key' | 'key_prefix'>;

/** With the values of tags under the names of their groups. */
type SqlRow = Record<string, unknown> & { latency: number[] };

/** Computes usage sums, from half-hourly sums where they can answer the question, else from the rows of the log. */
@Injectable()
export class UsageTotals {
  constructor(private readonly pool: ReaderPool) {}

  /**
   * Sums by the given groups, newest period first.
   *
   * @param groups one or more; at most one of them a period @param zone IANA name
   * @throws ServiceError invalid for a foreign cursor
   */
  async list(
    groups: readonly UsageGroup[],
    { limit, cursor, ...filter }: RequestFilter & PageRequest,
    zone = 'UTC',
  ): Promise<Page<UsageRow>> {
    const ordered = inOrder(groups);
    const { source, conditions } = fitsSlots(groups, filter, zone) ? slotsSource(filter) : rowsSource(filter);
    const sql = usageSql(ordered, source, conditions, zone, cursor, limit + 1);
    const { rows } = await this.pool.queries.query<SqlRow>(sql, conditions.values);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const isLast = rows.length <= limit || last === undefined;
    return {
      data: page.map((row) => shown(row, ordered)),
      next_cursor: isLast
        ? null
        : cursorOf(ordered.map((group) => (last[memberOf(group)] as string | null) ?? null)),
    };
  }
}

function shown({ latency, duration_ms: _, ...row }: SqlRow, groups: readonly UsageGroup[]): UsageRow {
  const tags: Record<string, unknown> = {};
  for (const group of groups) {
    const name = TAG_GROUP.exec(group)?.[1];
    if (name === undefined) continue;
    tags[name] = row[group];
    delete row[group];
  }
  return {
    ...row,
    ...(Object.keys(tags).length > 0 && { tags }),
    p50_ms: percentile(latency, 0.5),
    p95_ms: percentile(latency, 0.95),
  } as unknown as UsageRow;
}

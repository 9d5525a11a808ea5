import { Injectable } from '@nestjs/common';
import type { Page, PageRequest } from '../database/page.js';
import { ReaderPool } from './reader-pool.js';
import { conditionsOf, type RequestFilter } from './request-query.js';
import { columnOf, cursorOf, inOrder, pageSql, type UsageGroup, usageSql } from './usage-query.js';
import type { UsageView } from './usage.schema.js';

/** A group without the names of its team and key. */
export type UsageRow = Omit<UsageView, 'team' | 'key' | 'key_prefix'>;

/** Computes usage sums of the request log. */
@Injectable()
export class UsageTotals {
  constructor(private readonly pool: ReaderPool) {}

  /**
   * Sums by the given groups, newest day or hour first.
   *
   * @param groups one or more; at most one of day and hour
   * @throws ServiceError invalid for a foreign cursor
   */
  async list(
    groups: readonly UsageGroup[],
    { limit, cursor, ...filter }: RequestFilter & PageRequest,
  ): Promise<Page<UsageRow>> {
    const ordered = inOrder(groups);
    const conditions = conditionsOf(filter);
    const { where } = conditions;
    const page = pageSql(ordered, conditions, cursor, limit + 1);
    const { rows } = await this.pool.queries.query<UsageRow>(
      usageSql(ordered, where, page),
      conditions.values,
    );
    const data = rows.slice(0, limit);
    const last = data.at(-1) as Record<string, string | null> | undefined;
    return {
      data,
      next_cursor:
        rows.length > limit && last ? cursorOf(ordered.map((group) => last[columnOf(group)] ?? null)) : null,
    };
  }
}

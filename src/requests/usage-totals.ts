import { Injectable } from '@nestjs/common';
import type { PageRequest } from '../database/page.js';
import { ReaderPool } from './reader-pool.js';
import { conditionsOf, type RequestFilter } from './request-query.js';
import {
  columnOf,
  cursorOf,
  inOrder,
  pageSql,
  SUM_NAMES,
  sumOf,
  type UsageGroup,
  type UsageSort,
  usageSql,
} from './usage-query.js';
import type { UsagePage, UsageSums, UsageView } from './usage.schema.js';

/** A group without the names of its team and key. */
export type UsageRow = Omit<UsageView, 'team' | 'key' | 'key_prefix'>;

/** What to read. */
export type UsageRequest = RequestFilter & PageRequest & { sort?: UsageSort };

/** Computes usage sums of the request log. */
@Injectable()
export class UsageTotals {
  constructor(private readonly pool: ReaderPool) {}

  /**
   * Sums by the given groups, newest day or hour first, or the largest of the sum in `sort` first.
   *
   * @param groups one or more; at most one of day and hour
   * @throws ServiceError invalid for a foreign cursor
   */
  async list(
    groups: readonly UsageGroup[],
    { limit, cursor, sort, ...filter }: UsageRequest,
  ): Promise<UsagePage<UsageRow>> {
    const ordered = inOrder(groups);
    const conditions = conditionsOf(filter);
    const { where } = conditions;
    const page = pageSql(ordered, sort, conditions, cursor, limit + 1);
    const { rows } = await this.pool.queries.query<UsageRow & { totals: UsageSums }>(
      usageSql(ordered, where, page),
      conditions.values,
    );
    const data = rows.slice(0, limit).map(({ totals: _, ...row }) => row);
    const last = data.at(-1) as Record<string, string | number | null> | undefined;
    const place = [...(sort === undefined ? [] : [sumOf(sort)]), ...ordered.map(columnOf)];
    return {
      data,
      next_cursor: rows.length > limit && last ? cursorOf(place.map((name) => last[name] ?? null)) : null,
      // The condition of a later page leaves the groups of earlier ones out.
      totals: cursor === undefined ? (rows[0]?.totals ?? NOTHING) : null,
    };
  }
}

const NOTHING = Object.fromEntries(SUM_NAMES.map((name) => [name, 0])) as UsageSums;

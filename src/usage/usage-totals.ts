import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import type { PageRequest } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import { ReaderPool } from '../requests/reader-pool.js';
import type { RequestFilter } from '../requests/request-query.js';
import { percentile } from './latency.js';
import { SUM_NAMES, type UsagePage, type UsageSums, type UsageView } from './usage.schema.js';
import { isInterval, SORTS, TAG_GROUP, type UsageGroup, type UsageSort } from './usage-groups.js';
import { CURSOR } from './rollup-sql.js';
import { cursorOf, inOrder, memberOf, usageSql } from './usage-query.js';
import { fitsSlots, isSlotStart, rowsSource, slotsSource } from './usage-source.js';

const DAY_MS = 86_400_000;

/** A group without the names of its team and key. */
export type UsageRow = Omit<UsageView, 'team' | 'key' | 'key_prefix'>;

/** With the values of tags under the names of their groups. */
type SqlRow = Record<string, unknown> & { latency: number[]; totals: UsageSums };

/** What to read. */
export type UsageRequest = RequestFilter & PageRequest & { sort?: UsageSort };

/** Computes usage sums, from half-hourly sums where they can answer the question, else from the rows of the log. */
@Injectable()
export class UsageTotals {
  constructor(
    private readonly pool: ReaderPool,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Sums by the given groups, newest period first, or the largest of the sum in `sort` first.
   *
   * @param groups one or more; at most one of them a period @param zone IANA name
   * @throws ServiceError invalid for a foreign cursor, or a time for which nothing is kept any more
   */
  async list(
    groups: readonly UsageGroup[],
    { limit, cursor, sort, ...filter }: UsageRequest,
    zone = 'UTC',
  ): Promise<UsagePage<UsageRow>> {
    const ordered = inOrder(groups);
    const fromSlots = fitsSlots(groups, filter, zone);
    this.mustBeKept(filter, fromSlots);
    const { source, conditions } = fromSlots
      ? slotsSource(filter, groups.find(isInterval), zone, await this.addedUntil())
      : rowsSource(filter);
    const sql = usageSql(ordered, source, conditions, zone, { sort, cursor, limit: limit + 1 });
    const { rows } = await this.pool.queries.query<SqlRow>(sql, conditions.values);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const isLast = rows.length <= limit || last === undefined;
    const place = [...(sort === undefined ? [] : [SORTS[sort]]), ...ordered.map(memberOf)];
    return {
      data: page.map((row) => shown(row, ordered)),
      next_cursor: isLast ? null : cursorOf(place.map((name) => (last[name] ?? null) as string | null)),
      // The condition of a later page leaves the groups of earlier ones out.
      totals: cursor === undefined ? (rows[0]?.totals ?? NOTHING) : null,
    };
  }

  private async addedUntil(): Promise<Date> {
    const { rows } = await this.pool.queries.query<{ cursor: Date }>(CURSOR);
    return rows[0]!.cursor;
  }

  /** Sums of a time for which nothing is kept any more would be too small. */
  private mustBeKept(filter: RequestFilter, fromSlots: boolean): void {
    const { usageRetentionDays, requestLogRetentionDays } = this.env;
    for (const name of ['from', 'to'] as const) {
      const time = filter[name];
      if (time === undefined) continue;
      // Of a half hour that is cut, the rows are added up.
      const needsRows = !fromSlots || !isSlotStart(time);
      const days = needsRows
        ? requestLogRetentionDays
        : Math.max(usageRetentionDays, requestLogRetentionDays);
      if (time.getTime() >= Date.now() - (days + 1) * DAY_MS) continue;
      throw ServiceError.of(
        'invalid',
        name,
        needsRows
          ? `must be at most ${days} days ago (REQUEST_LOG_RETENTION_DAYS): only the rows of the request log can answer this. ` +
              'Group and filter by team, key, provider and model, between half hours, in a time zone that is a whole number ' +
              'of half hours from UTC, to read the sums that are kept for longer'
          : `must be at most ${days} days ago: usage is kept for so long (USAGE_RETENTION_DAYS)`,
      );
    }
  }
}

const NOTHING = {
  ...Object.fromEntries(SUM_NAMES.map((name) => [name, 0])),
  cost_usd: null,
  saved_usd: null,
} as UsageSums;

function shown(
  { latency, totals: _, duration_ms: __, ...row }: SqlRow,
  groups: readonly UsageGroup[],
): UsageRow {
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

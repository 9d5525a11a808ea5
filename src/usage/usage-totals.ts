import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { inSnapshot, ReaderPool } from '../requests/reader-pool.js';
import type { RequestFilter } from '../requests/request-query.js';
import { isUnknownTimeZone, TIME_ZONE_REMEDY } from '../platform/time-zone.js';
import { percentile } from './latency.js';
import { DAY_MS, dayOf, oldestDay } from '../request-log/partitions.js';
import { type ArchivedUsage, UsageArchive } from './usage-archive.js';
import { type CountedUsage, NO_USAGE, type UsageSums, type UsageView } from './usage.schema.js';
import { isInterval, SORTS, TAG_GROUP, type UsageGroup } from './usage-groups.js';
import {
  cursorOf,
  groupName,
  inOrder,
  memberOf,
  SERIES_COLUMNS,
  type UsageRequest,
  type UsageSqlRow,
  usageSql,
  valuesOf,
} from './usage-query.js';
import {
  cutsSlots,
  type Days,
  daysSql,
  fitsSlots,
  isSlotStart,
  rowsSource,
  slotRange,
  slotsSource,
} from './usage-source.js';

/** A group without the names of its team and key. */
export type UsageRow = Omit<UsageView, 'team' | 'key' | 'key_prefix'>;

type SqlRow = UsageSqlRow & { totals: UsageSums };

/** Computes usage sums, from half-hourly sums where they can answer the question, else from the rows of the log. */
@Injectable()
export class UsageTotals {
  constructor(
    private readonly pool: ReaderPool,
    @InjectSettings() private readonly env: Settings,
    private readonly archive: UsageArchive = new UsageArchive(),
  ) {}

  /**
   * Sums by the given groups, newest period first, or the largest of the sum in `sort` first.
   *
   * @param groups one or more; at most one of them a period @param zone IANA name @param pool whose connections are used
   * @throws ServiceError invalid for a foreign cursor, or a time for which nothing is kept any more
   */
  async list(
    groups: readonly UsageGroup[],
    request: UsageRequest,
    zone = 'UTC',
    pool = this.pool.of(request.teams),
  ): Promise<CountedUsage<UsageRow>> {
    const { limit, cursor: _, ...filter } = request;
    const ordered = inOrder(groups);
    const more = { ...request, limit: limit + 1 };
    const isArchived = await this.mustBeKept(groups, filter, zone, pool);
    const asked = isArchived ? await this.archive.reader!.list(ordered, more, zone) : null;
    const { rows, totals, until } = asked ?? (await this.counted(ordered, more, zone, pool));
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const isLast = rows.length <= limit || last === undefined;
    const place = [...(filter.sort === undefined ? [] : [SORTS[filter.sort]]), ...ordered.map(memberOf)];
    return {
      data: page.map((row) => shown(row, ordered)),
      next_cursor: isLast ? null : cursorOf(place.map((name) => (last[name] ?? null) as string | null)),
      totals,
      as_of: until.toISOString(),
      source: isArchived ? 'archive' : 'log',
    };
  }

  private async counted(
    groups: readonly UsageGroup[],
    { limit, cursor, sort, series, ...filter }: UsageRequest,
    zone: string,
    pool: pg.Pool,
  ): Promise<ArchivedUsage> {
    const until = new Date();
    const last = cursor === undefined ? null : valuesOf(cursor, groups.length, sort !== undefined);
    const rows = await inSnapshot(pool, async (client) => {
      const { source, conditions } = await this.sourceOf(client, groups, filter, zone);
      const sql = usageSql(groups, source, conditions, zone, { sort, series, last, limit });
      return (await client.query<SqlRow>(sql, conditions.values)).rows;
    }).catch((error: unknown) => {
      if (isUnknownTimeZone(error))
        throw ServiceError.of(
          'invalid',
          'tz',
          `${TIME_ZONE_REMEDY} that Postgres knows, too (pg_timezone_names)`,
        );
      throw error;
    });
    // The condition of a later page leaves the groups of earlier ones out.
    const totals = cursor === undefined ? (rows[0]?.totals ?? NO_USAGE) : null;
    return { rows: rows.map(({ totals: _, ...row }) => named(row as UsageSqlRow, groups)), totals, until };
  }

  private async sourceOf(
    client: pg.PoolClient,
    groups: readonly UsageGroup[],
    filter: RequestFilter,
    zone: string,
  ): Promise<ReturnType<typeof rowsSource>> {
    if (!fitsSlots(groups, filter, zone)) return rowsSource(filter);
    const range = slotRange(filter, cutsSlots(groups, zone) ? await this.rowsSince(client) : undefined);
    if (range === null) return rowsSource(filter);
    const interval = groups.find(isInterval);
    const { rows } = await client.query<Days>(daysSql(range, interval, zone));
    return slotsSource(filter, range, rows[0]!, interval, zone);
  }

  /** Since when the log has the rows of every half hour that has sums. */
  private async rowsSince(client: pg.PoolClient): Promise<Date> {
    // A late row of a day that was dropped creates its partition again, without the other rows.
    const kept = dayOf(Date.now() - this.env.requestLogRetentionDays * DAY_MS);
    return new Date(Math.max(kept, Number(await oldestDay(client))));
  }

  /**
   * Sums of a time for which nothing is kept any more would be too small.
   *
   * @returns true if the archive has to be read @throws ServiceError invalid if there is none
   */
  private async mustBeKept(
    groups: readonly UsageGroup[],
    { sort: _, series: __, ...filter }: Omit<UsageRequest, 'limit' | 'cursor'>,
    zone: string,
    pool: pg.Pool,
  ): Promise<boolean> {
    const fromSlots = fitsSlots(groups, filter, zone) && !cutsSlots(groups, zone);
    const { usageRetentionDays, requestLogRetentionDays } = this.env;
    let oldest: Date | null = null;
    for (const name of ['from', 'to'] as const) {
      const time = filter[name];
      if (time === undefined) continue;
      // Of a half hour that is cut, the rows are added up.
      const needsRows = !fromSlots || !isSlotStart(time);
      const days = needsRows
        ? requestLogRetentionDays
        : Math.max(usageRetentionDays, requestLogRetentionDays);
      const isKept = time.getTime() >= Date.now() - (days + 1) * DAY_MS;
      if (this.archive.reader !== null) {
        if (!isKept) return true;
        // Without an archive there may be no older calls: the log may be young.
        if (needsRows && time < (oldest ??= await oldestDay(pool))) return true;
      }
      if (isKept) continue;
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
    return false;
  }
}

/** With the values of its groups under their names. */
function named(row: UsageSqlRow, groups: readonly UsageGroup[]): UsageSqlRow {
  for (const column of SERIES_COLUMNS) delete row[column];
  for (const [i, group] of groups.entries()) {
    row[memberOf(group)] = row[groupName(i)];
    delete row[groupName(i)];
  }
  return row;
}

function shown({ latency, duration_ms: _, ...row }: UsageSqlRow, groups: readonly UsageGroup[]): UsageRow {
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

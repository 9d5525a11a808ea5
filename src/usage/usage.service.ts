import { Injectable, Logger } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { ServiceError } from '../errors/service-error.js';
import type { Scope } from '../admin/access/access.js';
import { KeyNames } from '../keys/key-names.service.js';
import { isUnknownTimeZone } from '../platform/time-zone.js';
import { CallFilters } from '../requests/call-filters.js';
import { ReaderPool } from '../requests/reader-pool.js';
import { UsageTotals } from './usage-totals.js';
import { isInterval, MINUTES_MS, type UsageGroup } from './usage-groups.js';
import type { CountedUsage, UsageFilter } from './usage.schema.js';

/** Usage sums of the request log, with the names of teams and keys. */
@Injectable()
export class UsageService {
  private readonly logger = new Logger('Usage');

  constructor(
    private readonly totals: UsageTotals,
    private readonly names: KeyNames,
    private readonly filters: CallFilters,
    @InjectSettings() private readonly env: Settings,
    private readonly pool: ReaderPool,
    database: DatabaseService,
  ) {
    database.whenReady(() => this.checkTimeZone());
  }

  /** @throws ServiceError not_found for an unknown team or key, invalid for a foreign cursor or a time no data is kept for */
  async list(
    { group_by, interval, tz = this.env.reportTimezone, ...filter }: UsageFilter,
    scope: Scope,
  ): Promise<CountedUsage> {
    const groups = withInterval(group_by, interval);
    if (groups.includes('minute')) mustBeShort(filter);
    const resolved = await this.filters.resolve(filter, scope);
    const page = await this.totals.list(groups, resolved, tz);
    const teams = await this.names.ofTeams(page.data.flatMap(({ team_id }) => team_id ?? []));
    const keys = await this.names.ofKeys(page.data.flatMap(({ key_id }) => key_id ?? []));
    return {
      ...page,
      data: page.data.map((row) => {
        const key = row.key_id === undefined ? undefined : keys.get(row.key_id);
        return {
          ...(row.team_id !== undefined
            ? { team: teams.get(row.team_id) ?? null }
            : row.key_id !== undefined && { team: key?.team ?? null }),
          ...(row.key_id !== undefined && { key: key?.name ?? null, key_prefix: key?.prefix ?? null }),
          ...row,
        };
      }),
    };
  }

  /** Without this, nobody hears of it before a report is rejected. Calls do not need the time zone: the gateway starts. */
  private async checkTimeZone(): Promise<void> {
    try {
      await this.pool.queries.query('SELECT now() AT TIME ZONE $1', [this.env.reportTimezone]);
    } catch (error) {
      if (!isUnknownTimeZone(error)) throw error;
      this.logger.error(
        `REPORT_TIMEZONE: ${describeError(error)}. Usage by hour, day, week or month fails without tz. ` +
          'Choose a name from pg_timezone_names.',
      );
    }
  }
}

/** @throws ServiceError invalid if there are two periods */
function withInterval(
  groups: readonly UsageGroup[],
  interval: UsageGroup | undefined,
): readonly UsageGroup[] {
  const all = interval === undefined || groups.includes(interval) ? groups : [...groups, interval];
  if (all.filter(isInterval).length > 1)
    throw ServiceError.of(
      'invalid',
      interval === undefined ? 'group_by' : 'interval',
      'must name one period at most',
    );
  return all;
}

/** @throws ServiceError invalid if rows of more than a few hours would have to be added up */
function mustBeShort({ from, to = new Date() }: Pick<UsageFilter, 'from' | 'to'>): void {
  if (from !== undefined && to.getTime() - from.getTime() <= MINUTES_MS) return;
  throw ServiceError.of(
    'invalid',
    'from',
    'must be at most 3 hours before to, or before now, if usage is added up by minute',
  );
}

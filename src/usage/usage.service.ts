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
import { instantAt } from '../platform/zoned-time.js';
import { TeamsService } from '../teams/teams.service.js';
import { fileName, usageCsv } from './usage-csv.js';
import { inOrder, type UsageRequest } from './usage-query.js';
import { UsageTotals } from './usage-totals.js';
import { isInterval, MINUTES_MS, type UsageGroup, type UsageSort } from './usage-groups.js';
import type {
  CountedUsage,
  Statement,
  StatementFilter,
  UsageExportFilter,
  UsageFilter,
} from './usage.schema.js';

/** Groups in a table or a statement, which are read at once. */
const MAX_TABLE = 50_000;
const TOO_MANY = () =>
  ServiceError.of(
    'invalid',
    'group_by',
    'gives more than 50,000 groups: add a filter, or choose a shorter time',
  );

const STATEMENT_GROUPS = ['team', 'key', 'provider', 'model'] as const;

/** A file of comma-separated values. */
export interface Table {
  readonly name: string;
  readonly chunks: Iterable<string>;
}

/** Usage sums of the request log, with the names of teams and keys. */
@Injectable()
export class UsageService {
  private readonly logger = new Logger('Usage');

  constructor(
    private readonly totals: UsageTotals,
    private readonly names: KeyNames,
    private readonly filters: CallFilters,
    private readonly teams: TeamsService,
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
    if (filter.series !== undefined) mustHaveSeries(groups, filter.sort);
    return this.named(groups, await this.filters.resolve(filter, scope), tz);
  }

  /**
   * All groups, as one table.
   *
   * @throws ServiceError as list(), and invalid if there are too many groups
   */
  async table({ group_by, interval, tz, ...filter }: UsageExportFilter, scope: Scope): Promise<Table> {
    const range = { from: filter.from, to: filter.to ?? new Date(), zone: tz ?? this.env.reportTimezone };
    const all = { group_by, interval, tz, ...filter, limit: MAX_TABLE };
    const { data, next_cursor } = await this.list(all, scope);
    if (next_cursor !== null) throw TOO_MANY();
    const groups = withInterval(group_by, interval);
    return {
      name: fileName(
        range,
        groups.map((group) => group.replace(':', '-')),
      ),
      chunks: usageCsv(data, inOrder(groups), range),
    };
  }

  /**
   * What a team has used in a month.
   *
   * @throws ServiceError not_found for an unknown team; as list()
   */
  async statement(
    { team, month, tz = this.env.reportTimezone }: StatementFilter,
    scope: Scope,
  ): Promise<Statement> {
    const { id, name, group, owner, cost_center, contact } = await this.teams.resolve(team, scope);
    const [year, number] = month.split('-').map(Number) as [number, number];
    const [from, to] = [number - 1, number].map((at) => instantAt(new Date(Date.UTC(year, at)), tz)) as [
      Date,
      Date,
    ];
    const filter = { team: id, from, to, sort: 'cost' as const, limit: MAX_TABLE };
    const { data, totals, as_of, next_cursor } = await this.named(STATEMENT_GROUPS, filter, tz);
    if (next_cursor !== null) throw TOO_MANY();
    return {
      ...{ month, time_zone: tz, from: from.toISOString(), to: to.toISOString() },
      ...{
        is_over: to.getTime() <= Date.now(),
        as_of,
        team: name,
        team_id: id,
        group,
        owner,
        cost_center,
        contact,
      },
      ...{ lines: data, totals: totals! },
    };
  }

  /** The lines of a statement, as one table. */
  tableOf({ lines, time_zone: zone, from, to, team, group, owner, cost_center, contact }: Statement): Table {
    const range = { from: new Date(from), to: new Date(to), zone };
    const before = [
      ['owner', owner],
      ['cost_center', cost_center],
      ['contact', contact],
      ['group', group],
    ] as const;
    return {
      name: fileName(range, ['statement', team]),
      chunks: usageCsv(lines, STATEMENT_GROUPS, range, before),
    };
  }

  private async named(
    groups: readonly UsageGroup[],
    request: UsageRequest,
    tz: string,
  ): Promise<CountedUsage> {
    const page = await this.totals.list(groups, request, tz);
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

/** @throws ServiceError invalid if there is nothing to rank, or if it cannot be ranked: percentiles are no sums */
function mustHaveSeries(groups: readonly UsageGroup[], sort: UsageSort | undefined): void {
  if (groups.every(isInterval))
    throw ServiceError.of('invalid', 'series', 'needs a group that is no period, such as team, in group_by');
  if (sort === 'p95')
    throw ServiceError.of(
      'invalid',
      'sort',
      'cannot be p95 together with series; choose a sum, such as cost',
    );
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

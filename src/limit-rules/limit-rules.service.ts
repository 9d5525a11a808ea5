import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { ServiceError } from '../errors/service-error.js';
import { mustBeKnownProviders } from '../providers/provider-rows.js';
import { isUnknownTimeZone } from '../platform/time-zone.js';
import type { LimitOwner, LimitRule, LimitScope } from './limit-rule.entity.js';
import type { NewBudget, ShownLimits } from './limit-rules.schema.js';
import { countWhatWasUsed, moveToTimeZone, tookTooLong, tryOnLog } from './log-charges.js';
import { filterText, NO_LIMITS, rulesOf } from './stored-rules.js';

/** Rules by what identifies them. One that is there and different keeps its id and with it what was used. */
const save = (owner: string, constraint: string) => `
  INSERT INTO limit_rule AS r
    (id, scope, scope_id, owner_id, resource, period, amount, mode, alert_at, unpriced, reservation, time_zone, rank, providers, models, filter)
  SELECT id, scope, ${owner}, resource, period, amount, mode,
         alert_at, unpriced, reservation, $3, $4, providers, models, filter
  FROM jsonb_to_recordset($2) AS x (id uuid, scope text, resource text, period text, amount bigint, mode text,
                                    alert_at smallint[], unpriced text, reservation text, providers text[], models text[],
                                    filter text)
  ON CONFLICT ON CONSTRAINT ${constraint} DO UPDATE
    SET amount = EXCLUDED.amount, mode = EXCLUDED.mode, alert_at = EXCLUDED.alert_at, unpriced = EXCLUDED.unpriced,
        reservation = EXCLUDED.reservation, version = r.version + 1
    WHERE (r.amount, r.mode, r.alert_at, r.unpriced, r.reservation)
      IS DISTINCT FROM (EXCLUDED.amount, EXCLUDED.mode, EXCLUDED.alert_at, EXCLUDED.unpriced, EXCLUDED.reservation)
  RETURNING id`;
/** Those that versions before know have their owner in `scope_id`, others a random one. */
const SAVE_KNOWN = save('$1::uuid, NULL', 'limit_rule_key');
const SAVE_NEW = save('gen_random_uuid(), $1::uuid', 'limit_rule_owner_key');

/**
 * `limit_sweep()` removes what was used of them: a change of rules that locked meters could deadlock with the settlement of a
 * job, which has locked the job and waits for a meter.
 */
const REMOVE = `
  DELETE FROM limit_rule r
  WHERE (scope_id = $1 OR owner_id = $1) AND NOT EXISTS (
    SELECT FROM jsonb_to_recordset($2) AS x (scope text, resource text, period text, filter text)
    WHERE (x.scope, x.resource, x.period, x.filter) = (r.scope, r.resource, r.period, r.filter))`;

/** The order in which their meters are locked; above 0, all replicas share them. */
const RANKS: Record<LimitOwner, number> = { key: 0, team: 0, group: 1, installation: 2 };

/** Processes of a version that knows no rules of the new kinds, and so would not charge them. */
const OLD_PROCESSES = `
  SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'postern-changes'`;

/** An owner has as many rules at most. */
const MAX_RULES = 32;
/** An index has the text of the filter, and the response to a rejected call names it. */
const MAX_FILTER = 2_000;
const PROVIDERS_OF =
  'SELECT DISTINCT unnest(providers) AS name FROM limit_rule WHERE scope_id = $1 OR owner_id = $1';

const BY_NUMBER =
  'SELECT nr, id, scope, COALESCE(owner_id, scope_id) AS owner, resource, period, filter FROM limit_rule WHERE nr = ANY ($1::bigint[])';

/** Limits of what callers say of a call. */
const OF_SAID = "SELECT count(*)::int AS count FROM limit_rule WHERE scope ~ '_(end_user|session)$'";

export type NumberedRule = Pick<LimitRule, 'id' | 'scope' | 'resource' | 'period' | 'filter'> & {
  owner: string;
};

/**
 * Stores the limits of teams and keys. A trigger publishes each change through the change feed, so that every replica has
 * it in force within a second.
 */
@Injectable()
export class LimitRules {
  private readonly logger = new Logger('Limits');

  constructor(
    private readonly dataSource: DataSource,
    @InjectSettings() private readonly env: Settings,
    database: DatabaseService,
  ) {
    database.whenReady(() => this.moveToTimeZone());
    database.whenReady(() => this.warnOfUnread());
  }

  /**
   * Makes these the limits of an owner, in the transaction of `manager`, which must have locked it.
   *
   * @throws ServiceError invalid for limits of end users or sessions if this gateway does not read them, or for too many;
   *   upgrade_in_progress while a process runs that would not charge some of them
   */
  async save(manager: EntityManager, owner: LimitOwner, ownerId: string, limits: ShownLimits): Promise<void> {
    this.mustBeRead(limits);
    const values = rulesOf(limits, owner);
    if (values.length > MAX_RULES)
      throw ServiceError.of('invalid', 'budgets', `an owner has at most ${MAX_RULES} limits and budgets`);
    if (values.some((rule) => filterText(rule).length > MAX_FILTER))
      throw ServiceError.of(
        'invalid',
        'models',
        `the providers and models of a limit must have at most ${MAX_FILTER} characters together; use * or several budgets`,
      );
    await this.mustKnow(manager, ownerId, values);
    const rules = values.map((rule) => ({ id: uuidv7(), filter: filterText(rule), ...rule }));
    const json = JSON.stringify(rules);
    await manager.query(REMOVE, [ownerId, json]);
    const known = rules.filter(isKnownBefore);
    const others = rules.filter((rule) => !isKnownBefore(rule));
    if (others.length > 0) await mustBeUpgraded(manager);
    const saved = new Set<string>();
    for (const [sql, list] of [
      [SAVE_KNOWN, known],
      [SAVE_NEW, others],
    ] as const) {
      if (list.length === 0) continue;
      const values = [ownerId, JSON.stringify(list), this.env.budgetTimezone, RANKS[owner]];
      for (const { id } of await manager.query<{ id: string }[]>(sql, values)) saved.add(id);
    }
    // One that was there has kept its id.
    const counted = rules.filter(({ id, counts_from_now: fromNow }) => saved.has(id) && fromNow !== true);
    await countWhatWasUsed(
      manager,
      { owner, ownerId },
      counted.map(({ id }) => id),
    );
  }

  /** Those that are there may name a provider that was removed. */
  private async mustKnow(
    manager: EntityManager,
    ownerId: string,
    values: ReturnType<typeof rulesOf>,
  ): Promise<void> {
    const named = new Set(values.flatMap(({ providers }) => providers ?? []));
    if (named.size === 0) return;
    const present = await manager.query<{ name: string }[]>(PROVIDERS_OF, [ownerId]);
    for (const { name } of present) named.delete(name);
    await mustBeKnownProviders(manager, [...named], 'providers');
  }

  private mustBeRead({ each_end_user: users, each_session: sessions }: ShownLimits): void {
    const { requestLogUsers, attribution } = this.env;
    if (users !== null && (requestLogUsers === 'none' || attribution === 'off')) {
      throw ServiceError.of(
        'invalid',
        'each_end_user',
        'needs the end users of calls: REQUEST_LOG_USERS must not be none, and ATTRIBUTION not off',
      );
    }
    if (sessions !== null && attribution === 'off')
      throw ServiceError.of(
        'invalid',
        'each_session',
        'needs the sessions of calls: ATTRIBUTION must not be off',
      );
  }

  /** What budgets would have done to the calls of the last days, were they those of an owner. */
  async tried(
    owner: LimitOwner,
    ownerId: string,
    budgets: readonly NewBudget[],
  ): Promise<{ calls: number; rejected: number }[]> {
    const rules = rulesOf({ ...NO_LIMITS, budgets: [...budgets] }, owner);
    return tryOnLog(this.dataSource.manager, { owner, ownerId }, rules, this.env.budgetTimezone);
  }

  /** The rules that there are of these numbers. */
  async byNumber(numbers: readonly string[]): Promise<Map<string, NumberedRule>> {
    if (numbers.length === 0) return new Map();
    const rows = await this.dataSource.query<(NumberedRule & { nr: string })[]>(BY_NUMBER, [
      [...new Set(numbers)],
    ]);
    return new Map(rows.map(({ nr, ...rule }) => [nr, rule]));
  }

  /** Limits of end users and sessions that were set before ATTRIBUTION=off. */
  private async warnOfUnread(): Promise<void> {
    if (this.env.attribution !== 'off') return;
    const [row] = await this.dataSource.query<{ count: number }[]>(OF_SAID);
    if (row!.count > 0)
      this.logger.error(
        `${row!.count} limits and budgets are for each end user or session, which ATTRIBUTION=off does not read: calls that a limit of each session would count are rejected (503), or not counted if it only warns, and all calls are one end user. Remove them, or set ATTRIBUTION to headers or all.`,
      );
  }

  /** Applies a changed BUDGET_TIMEZONE to the rules that there are. */
  private async moveToTimeZone(): Promise<void> {
    const { budgetTimezone } = this.env;
    try {
      const zones = await moveToTimeZone(this.dataSource, budgetTimezone);
      if (zones.length > 0)
        this.logger.warn(
          `BUDGET_TIMEZONE has changed from ${zones.join(', ')} to ${budgetTimezone}: days, weeks and months of all budgets begin there now. What was spent since then counts.`,
        );
    } catch (error) {
      // The log of the hours between takes too long.
      if (!isUnknownTimeZone(error) && !tookTooLong(error)) throw error;
      this.logger.error(
        `BUDGET_TIMEZONE: ${describeError(error)}. Budgets keep their time zone until the next start.`,
      );
    }
  }
}

/** Whether versions before know rules of this kind. */
function isKnownBefore({ scope, filter }: { scope: LimitScope; filter: string }): boolean {
  return filter === '' && /^(?:team|key)(?:_end_user)?$/.test(scope);
}

async function mustBeUpgraded(manager: EntityManager): Promise<void> {
  const [row] = await manager.query<{ count: number }[]>(OLD_PROCESSES);
  if (row!.count > 0)
    throw new ServiceError(
      'upgrade_in_progress',
      `${row!.count} processes of an earlier version of Postern use this database, which would not count what such a limit or budget counts. Try again once all are upgraded.`,
    );
}

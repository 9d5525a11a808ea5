import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { ServiceError } from '../errors/service-error.js';
import { isUnknownTimeZone } from '../platform/time-zone.js';
import type { LimitRule } from './limit-rule.entity.js';
import type { ShownLimits } from './limit-rules.schema.js';
import { moveToTimeZone } from './budget-time-zone.js';
import { type Owner, rulesOf } from './stored-rules.js';

/** Rules by what identifies them. One that is there and different keeps its id and with it what was used. */
const SAVE = `
  INSERT INTO limit_rule AS r
    (id, scope, scope_id, resource, period, amount, mode, alert_at, unpriced, reservation, time_zone)
  SELECT id, scope, $1, resource, period, amount, mode, alert_at, unpriced, reservation, $3
  FROM jsonb_to_recordset($2) AS x (id uuid, scope text, resource text, period text, amount bigint, mode text,
                                    alert_at smallint[], unpriced text, reservation text)
  ON CONFLICT ON CONSTRAINT limit_rule_key DO UPDATE
    SET amount = EXCLUDED.amount, mode = EXCLUDED.mode, alert_at = EXCLUDED.alert_at, unpriced = EXCLUDED.unpriced,
        reservation = EXCLUDED.reservation, version = r.version + 1
    WHERE (r.amount, r.mode, r.alert_at, r.unpriced, r.reservation)
      IS DISTINCT FROM (EXCLUDED.amount, EXCLUDED.mode, EXCLUDED.alert_at, EXCLUDED.unpriced, EXCLUDED.reservation)`;

const REMOVE = `
  DELETE FROM limit_rule r
  WHERE scope_id = $1 AND NOT EXISTS (
    SELECT FROM jsonb_to_recordset($2) AS x (scope text, resource text, period text)
    WHERE (x.scope, x.resource, x.period) = (r.scope, r.resource, r.period))
  RETURNING id`;

const BY_NUMBER =
  'SELECT nr, id, scope, scope_id, resource, period FROM limit_rule WHERE nr = ANY ($1::bigint[])';

/** What somebody has locked is left to `limit_sweep()`: a change waits for no exchange, and blocks none. */
const REMOVE_USE = ['limit_meter', 'limit_hold', 'limit_slot', 'limit_spent'].map(
  (table) => `
  DELETE FROM ${table} t USING (SELECT ctid FROM ${table} WHERE rule_id = ANY ($1) FOR UPDATE SKIP LOCKED) unlocked
  WHERE t.ctid = unlocked.ctid`,
);

export type NumberedRule = Pick<LimitRule, 'id' | 'scope' | 'scopeId' | 'resource' | 'period'>;

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
  }

  /**
   * Makes these the limits of a team or key, in the transaction of `manager`, which must have locked that team or key.
   *
   * @throws ServiceError invalid for limits of end users if this gateway does not read who they are
   */
  async save(manager: EntityManager, owner: Owner, ownerId: string, limits: ShownLimits): Promise<void> {
    const { requestLogUsers, attribution } = this.env;
    if (limits.each_end_user !== null && (requestLogUsers === 'none' || attribution === 'off')) {
      throw ServiceError.of(
        'invalid',
        'each_end_user',
        'needs the end users of calls: REQUEST_LOG_USERS must not be none, and ATTRIBUTION not off',
      );
    }
    const rules = JSON.stringify(rulesOf(limits, owner).map((rule) => ({ id: uuidv7(), ...rule })));
    const [removed] = await manager.query<[{ id: string }[], number]>(REMOVE, [ownerId, rules]);
    if (removed.length > 0) {
      const ids = [removed.map(({ id }) => id)];
      for (const sql of REMOVE_USE) await manager.query(sql, ids);
    }
    if (rules !== '[]') await manager.query(SAVE, [ownerId, rules, this.env.budgetTimezone]);
  }

  /** The rules that there are of these numbers. */
  async byNumber(numbers: readonly string[]): Promise<Map<string, NumberedRule>> {
    if (numbers.length === 0) return new Map();
    const rows = await this.dataSource.query<(NumberedRule & { nr: string; scope_id: string })[]>(BY_NUMBER, [
      [...new Set(numbers)],
    ]);
    return new Map(rows.map(({ nr, scope_id: scopeId, ...rule }) => [nr, { ...rule, scopeId }]));
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
      // 57014: the charges of the hours between take too long.
      if (!isUnknownTimeZone(error) && (error as { code?: string }).code !== '57014') throw error;
      this.logger.error(
        `BUDGET_TIMEZONE: ${describeError(error)}. Budgets keep their time zone until the next start.`,
      );
    }
  }
}

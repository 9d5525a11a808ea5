import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { Scope } from '../admin/access/access.js';
import { audited, lockRow, type Subject } from '../audit/audited.js';
import { recordChange } from '../audit/record-change.js';
import { idOfCursor, isUuid, type Page, pageOf } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { ServiceError } from '../errors/service-error.js';
import { INSTALLATION } from '../limit-rules/limit-rule.entity.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { matchesModels } from '../limit-rules/log-charges.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { changedLimits, sameLimits, shownLimits } from '../limit-rules/stored-rules.js';
import { usdOf } from '../limit-rules/usd.js';
import type { Actor } from '../platform/actor.js';
import { InstallationLimitsRow } from './installation-limits.entity.js';
import { MAX_SPENT } from './ledger/settlement.js';
import { TeamsService } from '../teams/teams.service.js';
import type {
  InstallationLimits,
  LimitFilter,
  LimitPreview,
  LimitPreviewResult,
  LimitReset,
  LimitView,
} from './limits.schema.js';

type LimitRow = Omit<
  LimitView,
  'resets_at' | 'amount' | 'credited' | 'used' | 'held' | 'left' | 'last_rejected_at' | 'last_needed'
> & {
  amount: string;
  credited: string;
  used: string;
  held: string;
  left: string;
  resets_at: Date | null;
  last_rejected_at: Date | null;
  last_needed: string | null;
};

const PERIOD_START = `
  CASE WHEN r.period IN ('minute', 'at_once', 'total', 'session') THEN to_timestamp(0)
       ELSE date_trunc(r.period, clock_timestamp(), r.time_zone) END`;

/**
 * Whether a call like the last one that was rejected would be rejected now: there is still too little for it, and no call
 * has been charged that began later. A limit that is not a budget frees itself within 65 seconds.
 */
const IS_BLOCKING = `
  (r.mode = 'block' AND refused_needed > r.amount + credited - used - holding
   AND refused_at > COALESCE(admitted_at, '-infinity')
   AND (r.period NOT IN ('minute', 'at_once') OR refused_at > clock_timestamp() - interval '65 seconds')) IS TRUE`;

/**
 * Each rule with its present meter; of a rule for each end user the one that rejects calls, else the one that is used most.
 *
 * @param meters condition that a meter must meet
 */
const select = (meters = 'true') => `
  SELECT * FROM (
    SELECT *, CASE WHEN blocking THEN 'blocking'
                   WHEN "left" = '0' THEN 'exhausted'
                   WHEN used::numeric * 100 >= alert_from * (amount::numeric + credited::numeric) THEN 'warned'
                   ELSE 'ok' END AS state
    FROM (
      SELECT r.id, r.scope, g.name AS group, t.name AS team, k.name AS key, r.providers, r.models, COALESCE(r.owner_id, r.scope_id) AS owner_id, NULLIF(m.subject, '') AS subject,
             r.resource, r.period, r.mode, CASE r.resource WHEN 'usd' THEN r.unpriced END AS unpriced, r.amount::text, COALESCE(m.credited, 0)::text AS credited,
             COALESCE(m.used, 0)::text AS used, COALESCE(m.holding, 0)::text AS held,
             GREATEST(r.amount + COALESCE(m.credited - m.used - m.holding, 0), 0)::text AS "left",
             LEAST(COALESCE(m.refused, 0), ${Number.MAX_SAFE_INTEGER})::float8 AS refused, (SELECT min(at) FROM unnest(r.alert_at) at) AS alert_from,
             CASE WHEN r.period NOT IN ('minute', 'at_once', 'total', 'session')
               THEN (limit_window(r.period, r.time_zone, clock_timestamp())).ends END AS resets_at,
             m.refused_at AS last_rejected_at, m.refused_needed::text AS last_needed, COALESCE(m.blocking, false) AS blocking,
             t.id AS team_id
      FROM limit_rule r
      LEFT JOIN gateway_key k ON k.id = COALESCE(r.owner_id, r.scope_id)
      LEFT JOIN team t ON t.id = COALESCE(k.team_id, r.owner_id, r.scope_id)
      LEFT JOIN team_group g ON g.id = r.owner_id
      CROSS JOIN LATERAL (SELECT ${PERIOD_START} AS starts) w
      LEFT JOIN LATERAL (
        SELECT *, ${IS_BLOCKING} AS blocking FROM (
        SELECT meter.subject, credited, refused, refused_at, refused_needed, meter.admitted_at, sums.spent,
               CASE r.period WHEN 'at_once' THEN held WHEN 'minute' THEN COALESCE(slots.used, 0) ELSE sums.spent END AS used,
               CASE WHEN r.period IN ('at_once', 'minute') THEN 0 ELSE held END AS holding
        FROM limit_meter meter
        LEFT JOIN (
          SELECT subject, sum(used) AS used FROM limit_slot
          WHERE rule_id = r.id AND slot > floor(extract(epoch FROM clock_timestamp()) / 2.5) - 26
          GROUP BY subject) slots ON slots.subject = meter.subject
        CROSS JOIN LATERAL (
          SELECT LEAST(meter.spent + COALESCE(sum(p.spent), 0), ${MAX_SPENT})::bigint AS spent FROM limit_spent p
          WHERE r.rank > 0
            AND (p.rule_id, p.subject, p.window_start) = (meter.rule_id, meter.subject, meter.window_start)) sums
        WHERE meter.rule_id = r.id AND window_start = w.starts AND ${meters}
        ) meters ORDER BY blocking DESC, used DESC, spent + holding DESC LIMIT 1) m ON true) figures) limits`;

const LIST = `${select()}
  WHERE ($1::uuid IS NULL OR team_id = $1) AND ($2::uuid IS NULL OR owner_id = $2) AND ($3::text IS NULL OR state = $3)
    AND ($4::uuid IS NULL OR id < $4) AND ($6::uuid[] IS NULL OR team_id = ANY ($6))
    AND ($7::text IS NULL OR scope IN ($7, $7 || '_end_user', $7 || '_session')) AND ($8::text IS NULL OR $8 = ANY (providers))
    AND ($9::uuid IS NULL OR id = $9) AND ($10::text IS NULL OR ${matchesModels('$10', 'models')})
  ORDER BY id DESC LIMIT $5`;
const FIND = `${select()} WHERE id = $1`;

/** Budgets that reject calls: nothing is left, or less than the last rejected call needed. */
const BLOCKING = `
  SELECT id, scope, "group", team, key, count(*) OVER ()::int AS count FROM (${select()}) blocking
  WHERE mode = 'block' AND period NOT IN ('minute', 'at_once') AND ($1::uuid[] IS NULL OR team_id = ANY ($1))
    AND state IN ('blocking', 'exhausted')
  ORDER BY refused DESC, id LIMIT $2`;

/**
 * The rules of a key and its team. Those of end users only with an end user, with no other's meters, and not those of the
 * team, whose meters count the calls of its other keys too. Those of sessions are left out: which of them are of the key is
 * not known by their hash.
 */
const OF_CALLER = `${select(`meter.subject IN ('', $3)`)}
  WHERE owner_id IN ($1, $2) AND (scope IN ('team', 'key') OR (scope = 'key_end_user' AND $3::text IS NOT NULL))
  ORDER BY id`;

/** The rules of the installation and of a team's group that reject calls. Without those of end users and sessions. */
const SHARED = `${select()}
  WHERE mode = 'block' AND (scope = 'installation'
    OR scope = 'group' AND owner_id = (SELECT group_id FROM team WHERE id = $1))
  ORDER BY id`;

const INSTALLATION_LIMITS: Subject<InstallationLimits> = {
  type: 'installation_limits',
  lock: lockRow(InstallationLimitsRow),
  find: findInstallation,
  shown: (limits) => ({ ...limits, name: 'installation' }),
};

async function findInstallation(manager: EntityManager): Promise<InstallationLimits> {
  const { id, version, rules } = await manager.findOneByOrFail(InstallationLimitsRow, { id: INSTALLATION });
  return { id, ...shownLimits(rules, 'installation'), version };
}

const LOCK = 'SELECT FROM limit_rule WHERE id = $1 FOR UPDATE';
/** In the order in which exchanges and settlements lock meters. */
const LOCK_METERS = `
  SELECT FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
  WHERE r.id = $1 AND m.window_start = ${PERIOD_START} AND ($2::text IS NULL OR m.subject = $2)
  ORDER BY m.rule_id, m.subject, m.window_start FOR UPDATE OF m`;
/**
 * What was spent stays: it is the sum of the charges in the request log. But one that has reached what a meter can count
 * is no sum any more, and would count nothing from then on: it starts again at 0.
 */
const RESET = `
  UPDATE limit_meter m SET credited = m.spent % ${MAX_SPENT}, spent = m.spent % ${MAX_SPENT}, alerted = 0,
    exhausted_at = NULL, refused_at = NULL, refused_needed = NULL
  FROM limit_rule r
  WHERE r.id = $1 AND m.rule_id = r.id AND m.window_start = ${PERIOD_START} AND ($2::text IS NULL OR m.subject = $2)`;

/** Shows limits and budgets with what was used of them, and resets budgets. */
@Injectable()
export class LimitsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly teams: TeamsService,
    private readonly rules: LimitRules,
  ) {}

  /** Newest first. @throws ServiceError not_found for an unknown team, invalid for a foreign cursor or key */
  async list(
    { team, key, id, scope, provider, model, state, limit, cursor }: LimitFilter,
    seen: Scope = null,
  ): Promise<Page<LimitView>> {
    const after = idOfCursor(cursor);
    if (key !== undefined && !isUuid(key)) throw ServiceError.of('invalid', 'key', 'must be the id of a key');
    const teamId = team === undefined ? null : (await this.teams.resolve(team, seen)).id;
    const others = [scope ?? null, provider ?? null, id ?? null, model ?? null];
    const values = [teamId, key ?? null, state ?? null, after, limit + 1, seen, ...others];
    return pageOf(await this.dataSource.query<LimitRow[]>(LIST, values), limit, limitView);
  }

  /** Budgets that are exhausted, or have rejected calls in this period. @param shown how many are named */
  async blocking(
    seen: Scope,
    shown: number,
  ): Promise<{ count: number; names: { id: string; name: string }[] }> {
    const rows = await this.dataSource.query<
      (Pick<LimitView, 'id' | 'scope' | 'group' | 'team' | 'key'> & { count: number })[]
    >(BLOCKING, [seen, shown]);
    const names = rows.map((row) => ({ id: row.id, name: nameOfOwner(row) }));
    return { count: rows[0]?.count ?? 0, names };
  }

  /** The rules that apply to the calls of a key. @param subject of an end user; null: without the rules of end users */
  async ofCaller(keyId: string, teamId: string, subject: string | null): Promise<LimitView[]> {
    const rows = await this.dataSource.query<LimitRow[]>(OF_CALLER, [keyId, teamId, subject]);
    return rows.map(limitView);
  }

  /** The rules that the calls of a team share with others: of its group and of the installation. */
  async sharedBy(teamId: string): Promise<LimitView[]> {
    const rows = await this.dataSource.query<LimitRow[]>(SHARED, [teamId]);
    return rows.map(limitView);
  }

  /** The limits of the installation. */
  ofInstallation(): Promise<InstallationLimits> {
    return findInstallation(this.dataSource.manager);
  }

  /**
   * Changes the limits of the installation.
   *
   * @throws ServiceError conflict if they were changed since `expected`; as LimitRules.save()
   */
  changeInstallation(
    change: LimitMembers,
    by: Actor,
    {
      manager = this.dataSource.manager,
      expected = null,
    }: { manager?: EntityManager; expected?: Expected } = {},
  ): Promise<InstallationLimits> {
    const request = { id: INSTALLATION, action: 'changed', by, expected };
    return audited(manager, INSTALLATION_LIMITS, request, async (manager, before) => {
      const limits = changedLimits(before, change);
      if (sameLimits(limits, before)) return null;
      await manager.update(InstallationLimitsRow, INSTALLATION, {});
      await this.rules.save(manager, 'installation', INSTALLATION, limits);
      return {};
    });
  }

  /** What budgets would have done to the calls of the last days. Stores nothing. */
  async preview({ owner, owner_id: id = INSTALLATION, budgets }: LimitPreview): Promise<LimitPreviewResult> {
    return { data: await this.rules.tried(owner, id, budgets) };
  }

  /**
   * Gives a budget its whole amount again for the rest of the period.
   *
   * @throws ServiceError not_found; invalid for a limit that is not a budget
   */
  reset(id: string, { reason, subject }: LimitReset, by: Actor): Promise<LimitView> {
    return this.dataSource.transaction(async (manager) => {
      if (isUuid(id)) await manager.query(LOCK, [id]);
      const before = await find(manager, id);
      if (before.period === 'minute' || before.period === 'at_once') {
        throw ServiceError.of(
          'invalid',
          'id',
          'only a budget can be reset; this limit frees itself within a minute',
        );
      }
      await manager.query('SELECT limit_fold($1)', [id]);
      await manager.query(LOCK_METERS, [id, subject ?? null]);
      await manager.query(RESET, [id, subject ?? null]);
      const after = await find(manager, id);
      const more = { reason, ...(subject !== undefined && { subject }) };
      await recordChange(manager, by, {
        action: 'reset',
        type: 'limit',
        before: named(before),
        after: named(after),
        more,
      });
      return after;
    });
  }
}

async function find(manager: EntityManager, id: string): Promise<LimitView> {
  const [row] = isUuid(id) ? await manager.query<LimitRow[]>(FIND, [id]) : [];
  if (row === undefined)
    throw ServiceError.of('not_found', 'id', 'no limit has this id; list the limits to find it');
  return limitView(row);
}

/** As people call it. */
function nameOfOwner({ group, team, key }: Pick<LimitView, 'group' | 'team' | 'key'>): string {
  if (key !== null) return `${team}/${key}`;
  return team ?? (group === null ? 'installation' : `group ${group}`);
}

function named(view: LimitView): LimitView & { name: string } {
  return { ...view, name: `${nameOfOwner(view)}: ${view.resource} per ${view.period}` };
}

function limitView(row: LimitRow): LimitView {
  const shown = (amount: string) => (row.resource === 'usd' ? usdOf(BigInt(amount)) : amount);
  return {
    id: row.id,
    scope: row.scope,
    group: row.group,
    team: row.team,
    key: row.key,
    owner_id: row.owner_id,
    providers: row.providers,
    models: row.models,
    subject: row.subject,
    resource: row.resource,
    period: row.period,
    mode: row.mode,
    unpriced: row.unpriced,
    amount: shown(row.amount),
    credited: shown(row.credited),
    used: shown(row.used),
    held: shown(row.held),
    left: shown(row.left),
    refused: row.refused,
    last_rejected_at: row.last_rejected_at?.toISOString() ?? null,
    last_needed: row.last_needed === null ? null : shown(row.last_needed),
    state: row.state,
    resets_at: row.resets_at?.toISOString() ?? null,
  };
}

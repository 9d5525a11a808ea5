import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { And, type EntityManager, ILike, type Repository } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import { audited, differing, type Subject } from '../audit/audited.js';
import { isUuid, type Page, pageOf, pageOptions } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { patternsOf } from '../database/search-text.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Access, Scope } from '../admin/access/access.js';
import type { Budget, LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { aboveTeam } from '../limit-rules/within-team.js';
import { changedLimits, NO_LIMITS, sameLimits, withoutLimits } from '../limit-rules/stored-rules.js';
import { mustBeKnownProviders } from '../providers/provider-rows.js';
import { columnsOf, insertTeam, type NewTeam, teamView } from './team-rows.js';
import { Team } from './team.entity.js';
import type { TeamChange, TeamFilter, TeamView } from './teams.schema.js';

/** Creates, finds and changes teams. */
@Injectable()
export class TeamsService {
  constructor(
    @InjectRepository(Team) private readonly teams: Repository<Team>,
    private readonly limits: LimitRules,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): TeamsService {
    return new TeamsService(manager.getRepository(Team), this.limits);
  }

  /** @throws ServiceError conflict if the name is taken, invalid if it looks like an ID, or for an unknown provider */
  async create(team: NewTeam & LimitMembers, by: Actor): Promise<TeamView> {
    mustNotLookLikeId(team.name);
    const limits = changedLimits(NO_LIMITS, team);
    const creating = transacted(this.teams.manager, async (manager) => {
      await mustBeKnown(manager, team);
      return insertTeam(manager, team, by, (id) => this.limits.save(manager, 'team', id, limits));
    });
    return unlessTaken(creating);
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list(
    { search, owner: ownedBy, contact, cost_center: costCenter, ...page }: TeamFilter,
    scope: Scope = null,
  ): Promise<Page<TeamView>> {
    const { where, ...options } = pageOptions(page, scope);
    const asked = {
      ...(search !== undefined && { name: And(...patternsOf(search).map((word) => ILike(word))) }),
      ...(ownedBy !== undefined && { ownedBy }),
      ...(contact !== undefined && { contact }),
      ...(costCenter !== undefined && { costCenter }),
    };
    const teams = await this.teams.find({ where: { ...where, ...asked }, ...options });
    return pageOf(teams, page.limit, teamView);
  }

  /** @throws ServiceError not_found, also outside the scope */
  get(nameOrId: string, scope: Scope = null): Promise<TeamView> {
    return find(this.teams.manager, nameOrId, 'id', scope);
  }

  /**
   * Changes a team. If nothing differs, the version stays and nothing is recorded.
   *
   * @param check of the locked team, before the change
   * @throws ServiceError not_found; conflict if it was changed since `expected`, or the name is taken; invalid if the name
   *   looks like an ID, or for an unknown provider
   */
  async update(
    nameOrId: string,
    change: TeamChange,
    by: Actor,
    expected: Expected = null,
    check?: (team: TeamView) => void,
  ): Promise<TeamView> {
    if (change.name !== undefined) mustNotLookLikeId(change.name);
    const request = { id: nameOrId, action: 'changed', by, expected };
    const changing = audited(this.teams.manager, TEAM, request, async (manager, team) => {
      const names = differing(team, withoutLimits(change));
      const limits = changedLimits(team, change);
      const limitsDiffer = !sameLimits(limits, team);
      if (names.length === 0 && !limitsDiffer) return null;
      check?.(team);
      if (names.includes('self_service')) await mustBeKnown(manager, change);
      if (limitsDiffer) await this.limits.save(manager, 'team', team.id, limits);
      await manager.update(Team, team.id, columnsOf(change));
      return {};
    });
    return unlessTaken(changing);
  }

  /**
   * What the lead of a team (role `lead`) may change of it: which keys members may create, within the budgets of the team
   * and the providers that an administrator has named.
   *
   * @throws ServiceError as update(); not_found for a team of somebody else; forbidden for other members
   */
  async updateLed(
    nameOrId: string,
    change: TeamChange,
    by: Access,
    expected: Expected = null,
  ): Promise<TeamView> {
    const { id } = await this.get(nameOrId, by.scope);
    const { self_service: wanted, ...others } = change;
    const other = Object.entries(others).find(([, value]) => value !== undefined);
    if (other !== undefined)
      throw ServiceError.of(
        'forbidden',
        other[0],
        'only an administrator may change it; self_service is yours',
      );
    return this.update(id, { self_service: wanted }, by.actor, expected, (team) => mustBeLed(wanted, team));
  }

  /**
   * Finds a team by name or ID. No name looks like an ID, so the result is unambiguous.
   *
   * @throws ServiceError not_found, also outside the scope
   */
  resolve(nameOrId: string, scope: Scope = null): Promise<TeamView> {
    return find(this.teams.manager, nameOrId, 'team', scope);
  }
}

/** @throws ServiceError invalid for an unknown provider */
function mustBeKnown(manager: EntityManager, { self_service: allowed }: Partial<NewTeam>): Promise<void> {
  return mustBeKnownProviders(manager, allowed?.providers, 'self_service.providers');
}

/** @throws ServiceError forbidden, or invalid for a budget above that of the team */
function mustBeLed(wanted: TeamChange['self_service'], team: TeamView): void {
  const providers = team.self_service?.providers ?? null;
  if (providers !== null && !wanted?.providers?.every((name) => providers.includes(name)))
    throw ServiceError.of(
      'forbidden',
      'self_service.providers',
      `an administrator lets keys of this team use ${providers.join(', ')} only: name some of them`,
    );
  if (wanted?.budget_usd_per_month == null) return;
  const budget: Budget = {
    usd: wanted.budget_usd_per_month,
    period: 'month',
    mode: 'block',
    alert_at: [],
    unpriced: 'reject',
    reservation: 'typical',
  };
  const above = aboveTeam({ ...NO_LIMITS, budgets: [budget] }, team);
  if (above !== undefined)
    throw ServiceError.of(
      'invalid',
      'self_service.budget_usd_per_month',
      `must be at most that of the team: ${above.most}`,
    );
}

function mustNotLookLikeId(name: string): void {
  if (isUuid(name)) throw ServiceError.of('invalid', 'name', 'must not look like an ID; choose another name');
}

const TEAM: Subject<TeamView> = {
  type: 'team',
  lock: async (manager, nameOrId) => (await findRow(manager, nameOrId, 'id', null, true)).id,
  find: (manager, id) => find(manager, id, 'id'),
  shown: (team) => team,
};

async function find(...query: Parameters<typeof findRow>): Promise<TeamView> {
  return teamView(await findRow(...query));
}

/**
 * @param field the field that names the team
 * @throws ServiceError not_found
 */
async function findRow(
  manager: EntityManager,
  nameOrId: string,
  field: string,
  scope: Scope = null,
  isLocked = false,
): Promise<Team> {
  const team = await manager.findOne(Team, {
    where: isUuid(nameOrId) ? { id: nameOrId } : { name: nameOrId },
    ...(isLocked && { lock: { mode: 'pessimistic_write' } }),
  });
  if (team !== null && (scope === null || scope.includes(team.id))) return team;
  throw ServiceError.of(
    'not_found',
    field,
    'no team has this name or id; list the teams, or create it first',
  );
}

async function unlessTaken(work: Promise<TeamView>): Promise<TeamView> {
  try {
    return await work;
  } catch (error) {
    if (!isUniqueViolation(error, 'team_name_key')) throw error;
    throw ServiceError.of('conflict', 'name', 'a team with this name already exists; choose another name');
  }
}

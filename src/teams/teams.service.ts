import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { And, type EntityManager, ILike, In, type Repository } from 'typeorm';
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
import { LOCK_CHANGES } from '../providers/provider-rows.js';
import { mustBeUsable } from '../providers/team-providers.js';
import { columnsOf, insertTeam, type NewTeam, teamView } from './team-rows.js';
import { groupIdOf, raiseGroups, teamsOfGroup } from './team-groups.js';
import { TeamChanges } from './team-changes.js';
import { Team } from './team.entity.js';
import type { TeamChange, TeamFilter, TeamView } from './teams.schema.js';

/** As the insertion of a team does, but before its group, as `apply` locks the tables. */
const LOCK_TABLE = 'LOCK TABLE team IN ROW EXCLUSIVE MODE';

/** Creates, finds and changes teams. */
@Injectable()
export class TeamsService {
  constructor(
    @InjectRepository(Team) private readonly teams: Repository<Team>,
    private readonly limits: LimitRules,
    private readonly changes: TeamChanges,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): TeamsService {
    return new TeamsService(manager.getRepository(Team), this.limits, this.changes);
  }

  /**
   * @throws ServiceError conflict if the name is taken; invalid if it looks like an ID, or for an unknown provider; not_found
   *   for an unknown group
   */
  async create({ group = null, ...team }: CreatedTeam, by: Actor): Promise<TeamView> {
    mustNotLookLikeId(team.name);
    const limits = changedLimits(NO_LIMITS, team);
    const creating = transacted(this.teams.manager, async (manager) => {
      if (namesProviders(team)) await manager.query(LOCK_CHANGES);
      await mustFit(manager, { id: null, providers: null, default_provider: null }, team);
      const groupId = group === null ? null : await groupIdOf(manager, group);
      await manager.query(LOCK_TABLE);
      await raiseGroups(manager, [groupId]);
      return insertTeam(manager, { ...team, groupId }, by, (id) =>
        this.limits.save(manager, 'team', id, limits),
      );
    });
    return unlessTaken(creating);
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor; not_found for an unknown group */
  async list(
    { search, group, owner: ownedBy, contact, cost_center: costCenter, ...page }: TeamFilter,
    scope: Scope = null,
  ): Promise<Page<TeamView>> {
    const { where, ...options } = pageOptions(page, scope);
    const asked = {
      ...(search !== undefined && { name: And(...patternsOf(search).map((word) => ILike(word))) }),
      ...(group !== undefined && { groupId: await groupIdOf(this.teams.manager, group, scope) }),
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
   * @throws ServiceError not_found, also for an unknown group; conflict if it was changed since `expected`, or the name is
   *   taken; invalid if the name looks like an ID, or for an unknown provider
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
    // Before the team: changes of providers take both locks in this order.
    const lock: typeof TEAM.lock = async (manager, id) => {
      if (namesProviders(change)) await manager.query(LOCK_CHANGES);
      return TEAM.lock(manager, id);
    };
    const changing = audited(this.teams.manager, { ...TEAM, lock }, request, async (manager, team) => {
      const { group, ...others } = withoutLimits(change);
      const moved = await this.moved(manager, team, group);
      const names = differing(team, others);
      const limits = changedLimits(team, change);
      const limitsDiffer = !sameLimits(limits, team);
      if (names.length === 0 && moved === undefined && !limitsDiffer) return null;
      check?.(team);
      await mustFit(manager, team, Object.fromEntries(names.map((name) => [name, change[name]])));
      if (limitsDiffer) await this.limits.save(manager, 'team', team.id, limits);
      if (names.includes('self_service') && change.self_service)
        await this.changes.selfServiceChanged(manager, team.id, change.self_service);
      await manager.update(Team, team.id, columnsOf({ ...others, groupId: moved }));
      if (names.includes('sign_in') && change.sign_in)
        await this.changes.signInChanged(manager, team.id, change.sign_in, by);
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

  /**
   * IDs of the teams in a group.
   *
   * @param scope of these teams: groups of others are not found @throws ServiceError not_found
   */
  async idsOfGroup(nameOrId: string, scope: Scope = null): Promise<string[]> {
    return teamsOfGroup(this.teams.manager, await groupIdOf(this.teams.manager, nameOrId, scope));
  }

  /**
   * Locks teams until the end of the transaction, in the order of their IDs.
   *
   * @param names or IDs @param field that names them @param groupId of a group whose teams are locked too
   * @throws ServiceError not_found
   */
  async lock(
    names: readonly string[],
    field: string,
    groupId?: string,
  ): Promise<{ id: string; groupId: string | null; isNamed: boolean }[]> {
    const ids = names.filter(isUuid).map((id) => id.toLowerCase());
    const texts = names.filter((name) => !isUuid(name));
    const teams = await this.teams.find({
      select: { id: true, name: true, groupId: true },
      where: [{ id: In(ids) }, { name: In(texts) }, ...(groupId === undefined ? [] : [{ groupId }])],
      order: { id: 'ASC' },
      lock: { mode: 'pessimistic_write' },
    });
    const unknown =
      ids.find((id) => !teams.some((team) => team.id === id)) ??
      texts.find((text) => !teams.some(({ name }) => name === text));
    if (unknown !== undefined)
      throw ServiceError.of('not_found', field, `no team has the name or id ${JSON.stringify(unknown)}`);
    return teams.map(({ id, name, groupId }) => ({
      id,
      groupId,
      isNamed: ids.includes(id) || texts.includes(name),
    }));
  }

  /** The ID of the group that a locked team moves to, null for none; undefined if it stays where it is. */
  private async moved(
    manager: EntityManager,
    { id }: TeamView,
    group: string | null | undefined,
  ): Promise<string | null | undefined> {
    if (group === undefined) return undefined;
    // A row whose columns are all null is none to TypeORM.
    const select = { id: true, groupId: true };
    const { groupId: present } = await manager.findOneOrFail(Team, { select, where: { id } });
    const wanted = group === null ? null : await groupIdOf(manager, group);
    if (wanted === present) return undefined;
    await raiseGroups(manager, [present, wanted]);
    return wanted;
  }
}

/** What a team is created with. */
type CreatedTeam = Omit<NewTeam, 'groupId'> & LimitMembers & { group?: string | null };

type ProviderRules = Pick<TeamView, 'providers' | 'default_provider'> & { id: string | null };

function namesProviders(team: Partial<NewTeam>): boolean {
  const lists = [team.providers, team.self_service?.providers, team.sign_in?.providers];
  return team.default_provider != null || lists.some((list) => list != null);
}

/**
 * Checks the providers that a team is to have.
 *
 * @param change what differs
 * @throws ServiceError invalid for one that the team may not use
 */
async function mustFit(
  manager: EntityManager,
  { id, ...present }: ProviderRules,
  change: Partial<NewTeam>,
): Promise<void> {
  const { providers, default_provider: byDefault } = { ...present, ...change };
  const [all, listed] = [null, providers ?? null].map((names) => ({ id, providers: names }));
  await mustBeUsable(manager, all!, change.providers);
  // A list that was changed must go with the default that stays.
  const isAffected = change.default_provider !== undefined || change.providers !== undefined;
  if (isAffected && byDefault != null) await mustBeUsable(manager, listed!, [byDefault], 'default_provider');
  await mustBeUsable(manager, listed!, change.self_service?.providers, 'self_service.providers');
  await mustBeUsable(manager, listed!, change.sign_in?.providers, 'sign_in.providers');
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
  const days = team.self_service?.sign_in_within_days ?? null;
  if (days !== null && (wanted?.sign_in_within_days ?? Infinity) > days)
    throw ServiceError.of(
      'forbidden',
      'self_service.sign_in_within_days',
      `an administrator lets keys of this team work for ${days} days after a sign-in: name as many or fewer`,
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

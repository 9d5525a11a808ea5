import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { And, type EntityManager, ILike, type Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, differing, type Subject } from '../audit/audited.js';
import { recordChange } from '../audit/record-change.js';
import { isUuid, type Page, pageOf, pageOptions } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { patternsOf } from '../database/search-text.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import {
  changedLimits,
  NO_LIMITS,
  sameLimits,
  shownLimits,
  withoutLimits,
} from '../limit-rules/stored-rules.js';
import type { Actor } from '../platform/actor.js';
import { lockGroups } from '../teams/team-groups.js';
import { TeamsService } from '../teams/teams.service.js';
import { TeamGroup } from './group.entity.js';
import type { GroupChange, GroupFilter, GroupView, NewGroup } from './groups.schema.js';

/** Creates, finds, changes and removes groups of teams. */
@Injectable()
export class GroupsService {
  constructor(
    @InjectRepository(TeamGroup) private readonly groups: Repository<TeamGroup>,
    private readonly teams: TeamsService,
    private readonly limits: LimitRules,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): GroupsService {
    return new GroupsService(manager.getRepository(TeamGroup), this.teams, this.limits);
  }

  /**
   * The audit log has an entry for the group, and one for each team that joins it.
   *
   * @throws ServiceError conflict if the name is taken; invalid if it looks like an ID; not_found for an unknown team; as
   *   LimitRules.save()
   */
  async create({ name, note, teams, ...members }: NewGroup, by: Actor): Promise<GroupView> {
    mustNotLookLikeId(name);
    const creating = transacted(this.groups.manager, async (manager) => {
      const joining = await this.teams.in(manager).lock(teams, 'teams');
      await lockGroups(manager, groupsOf(joining));
      const id = uuidv7();
      await manager.insert(TeamGroup, { id, name, note });
      await this.move(manager, joining, id, by);
      await this.limits.save(manager, 'group', id, changedLimits(NO_LIMITS, members));
      const after = groupView(await manager.findOneByOrFail(TeamGroup, { id }));
      await recordChange(manager, by, { action: 'created', type: 'group', before: null, after });
      return after;
    });
    return unlessTaken(creating);
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ search, ...page }: GroupFilter): Promise<Page<GroupView>> {
    const { where, ...options } = pageOptions(page);
    const asked = search !== undefined && { name: And(...patternsOf(search).map((word) => ILike(word))) };
    const groups = await this.groups.find({ where: { ...where, ...asked }, ...options });
    return pageOf(groups, page.limit, groupView);
  }

  /** @throws ServiceError not_found */
  get(nameOrId: string): Promise<GroupView> {
    return find(this.groups.manager, nameOrId);
  }

  /**
   * Changes a group. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found, also for an unknown team; conflict if it was changed since `expected`, or the name is
   *   taken; invalid if the name looks like an ID; as LimitRules.save()
   */
  async update(
    nameOrId: string,
    change: GroupChange,
    by: Actor,
    expected: Expected = null,
  ): Promise<GroupView> {
    if (change.name !== undefined) mustNotLookLikeId(change.name);
    const { teams: wanted, ...others } = withoutLimits(change);
    let members: readonly Member[] = [];
    const subject: Subject<GroupView> = {
      ...GROUP,
      lock: async (manager, nameOrId) => {
        const id = await idOf(manager, nameOrId);
        const teams = this.teams.in(manager);
        // Teams before groups, as in each change of a team.
        if (wanted !== undefined) members = await teams.lock(wanted, 'teams', id);
        await lockGroups(manager, [...groupsOf(members), id]);
        return id;
      },
    };
    const request = { id: nameOrId, action: 'changed', by, expected };
    const changing = audited(this.groups.manager, subject, request, async (manager, group) => {
      const joining = members.filter(({ groupId, isNamed }) => isNamed && groupId !== group.id);
      const leaving = members.filter(({ groupId, isNamed }) => !isNamed && groupId === group.id);
      const present = members.filter(({ groupId }) => groupId === group.id);
      if (wanted !== undefined && present.length !== group.teams.length)
        throw ServiceError.of('conflict', 'teams', 'a team joined this group meanwhile; repeat your change');
      const names = differing(group, others);
      const limits = changedLimits(group, change);
      const limitsDiffer = !sameLimits(limits, group);
      if (names.length + joining.length + leaving.length === 0 && !limitsDiffer) return null;
      await manager.update(TeamGroup, group.id, others);
      await this.move(manager, leaving, null, by);
      await this.move(manager, joining, group.id, by);
      // With its teams, whose calls of this period a new budget counts.
      if (limitsDiffer) await this.limits.save(manager, 'group', group.id, limits);
      return {};
    });
    return unlessTaken(changing);
  }

  /** @throws ServiceError not_found; conflict if it has teams, or was changed since `expected` */
  async remove(nameOrId: string, by: Actor, expected: Expected = null): Promise<void> {
    const request = { id: nameOrId, action: 'removed', by, expected, removes: true };
    const lock: typeof GROUP.lock = async (manager, nameOrId) => {
      const id = await idOf(manager, nameOrId);
      await this.teams.in(manager).lock([], 'teams', id);
      return GROUP.lock(manager, id);
    };
    await audited(this.groups.manager, { ...GROUP, lock }, request, async (manager, { id, teams }) => {
      if (teams.length > 0)
        throw ServiceError.of(
          'conflict',
          'teams',
          `this group has the teams ${shownList(teams)}; take them out of it first, with "teams": []`,
        );
      await this.limits.save(manager, 'group', id, NO_LIMITS);
      await manager.delete(TeamGroup, id);
      return {};
    });
  }

  /** Each team with its own audit entry and version. */
  private async move(
    manager: EntityManager,
    teams: readonly Member[],
    groupId: string | null,
    by: Actor,
  ): Promise<void> {
    for (const { id } of teams) await this.teams.in(manager).update(id, { group: groupId }, by);
  }
}

type Member = Awaited<ReturnType<TeamsService['lock']>>[number];

function groupsOf(teams: readonly Member[]): string[] {
  return teams.flatMap(({ groupId }) => groupId ?? []);
}

const GROUP: Subject<GroupView> = {
  type: 'group',
  lock: async (manager, nameOrId) => {
    const id = await idOf(manager, nameOrId);
    await lockGroups(manager, [id]);
    return id;
  },
  find,
  shown: (group) => group,
};

async function find(manager: EntityManager, nameOrId: string): Promise<GroupView> {
  const where = isUuid(nameOrId) ? { id: nameOrId } : { name: nameOrId };
  const group = await manager.findOneBy(TeamGroup, where);
  if (group !== null) return groupView(group);
  throw ServiceError.of(
    'not_found',
    'id',
    'no group has this name or id; list the groups, or create it first',
  );
}

/** @throws ServiceError not_found */
async function idOf(manager: EntityManager, nameOrId: string): Promise<string> {
  return (await find(manager, nameOrId)).id;
}

function mustNotLookLikeId(name: string): void {
  if (isUuid(name)) throw ServiceError.of('invalid', 'name', 'must not look like an ID; choose another name');
}

const SHOWN = 5;

function shownList(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}

/** Lists each field, so that a new column is not shown by accident. */
function groupView({ id, name, note, teams, rules, version, createdAt }: TeamGroup): GroupView {
  const limits = shownLimits(rules, 'group');
  return { id, name, note, teams, ...limits, version, created_at: createdAt.toISOString() };
}

async function unlessTaken(work: Promise<GroupView>): Promise<GroupView> {
  try {
    return await work;
  } catch (error) {
    if (!isUniqueViolation(error, 'team_group_name_key')) throw error;
    throw ServiceError.of('conflict', 'name', 'a group with this name already exists; choose another name');
  }
}

import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import { idOfCursor, isUuid, type Page, pageOf, type PageRequest } from '../database/page.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { inTransaction, type Transactions } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Scope } from '../admin/access/access.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { changedLimits, NO_LIMITS, sameLimits } from '../limit-rules/stored-rules.js';
import { mustBeKnownProviders } from '../providers/provider-rows.js';
import { insertTeam, type NewTeam, SELECT_TEAMS, type TeamRow, teamView } from './team-rows.js';
import { type Expected, mustBeExpected } from '../database/revision.js';
import type { TeamChange, TeamView } from './teams.schema.js';

/** @param scope placeholder of the IDs of the teams that may be seen */
const seen = (scope: string) => `(${scope}::uuid[] IS NULL OR id = ANY (${scope}))`;

const LIST = `
  ${SELECT_TEAMS} WHERE ($1::uuid IS NULL OR id < $1) AND ${seen('$3')} ORDER BY id DESC LIMIT $2`;
const FIND_BY_ID = `${SELECT_TEAMS} WHERE id = $1 AND ${seen('$2')}`;
const FIND_BY_NAME = `${SELECT_TEAMS} WHERE name = $1 AND ${seen('$2')}`;

const FIELDS = ['name', 'disabled', 'models', 'stream_usage', 'self_service'] as const;
const UPDATE = `
  UPDATE team SET name = $2, disabled = $3, models = $4, stream_usage = $5, self_service = $6, version = version + 1 WHERE id = $1`;

/** Creates, finds and changes teams. */
@Injectable()
export class TeamsService {
  constructor(
    @InjectDataSource() private readonly dataSource: Transactions,
    private readonly limits: LimitRules,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): TeamsService {
    return new TeamsService(inTransaction(manager), this.limits);
  }

  /** @throws ServiceError conflict if the name is taken, invalid if it looks like an ID, or for an unknown provider */
  async create(team: NewTeam & LimitMembers, by: Actor): Promise<TeamView> {
    mustNotLookLikeId(team.name);
    const limits = changedLimits(NO_LIMITS, team);
    const creating = this.dataSource.transaction(async (manager) => {
      await mustBeKnown(manager, team);
      return insertTeam(manager, team, by, (id) => this.limits.save(manager, 'team', id, limits));
    });
    return unlessTaken(creating);
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ limit, cursor }: PageRequest, scope: Scope = null): Promise<Page<TeamView>> {
    const rows = await this.dataSource.query<TeamRow[]>(LIST, [idOfCursor(cursor), limit + 1, scope]);
    return pageOf(rows, limit, teamView);
  }

  /** @throws ServiceError not_found, also outside the scope */
  get(nameOrId: string, scope: Scope = null): Promise<TeamView> {
    return find(this.dataSource.manager, nameOrId, 'id', { scope });
  }

  /**
   * Changes a team. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; conflict if it was changed since `expected`, or the name is taken; invalid if the name
   *   looks like an ID, or for an unknown provider
   */
  async update(
    nameOrId: string,
    change: TeamChange,
    by: Actor,
    expected: Expected = null,
  ): Promise<TeamView> {
    if (change.name !== undefined) mustNotLookLikeId(change.name);
    const changing = this.dataSource.transaction(async (manager) => {
      const locked = await find(manager, nameOrId, 'id', { lock: 'FOR UPDATE' });
      // Again, so that the limits are those of the last change that the lock waited for.
      const before = await find(manager, locked.id, 'id');
      mustBeExpected('team', before, expected);
      const wanted = { ...before, ...change };
      const isSame = (field: (typeof FIELDS)[number]) =>
        JSON.stringify(wanted[field]) === JSON.stringify(before[field]);
      const limits = changedLimits(before, change);
      const limitsDiffer = !sameLimits(limits, before);
      if (FIELDS.every(isSame) && !limitsDiffer) return before;
      if (!isSame('self_service')) await mustBeKnown(manager, change);
      if (limitsDiffer) await this.limits.save(manager, 'team', before.id, limits);
      await manager.query(UPDATE, [before.id, ...FIELDS.map((field) => wanted[field])]);
      const after = await find(manager, before.id, 'id');
      await recordChange(manager, by, { action: 'changed', type: 'team', before, after });
      return after;
    });
    return unlessTaken(changing);
  }

  /**
   * Finds a team by name or ID. No name looks like an ID, so the result is unambiguous.
   *
   * @throws ServiceError not_found, also outside the scope
   */
  resolve(nameOrId: string, scope: Scope = null): Promise<TeamView> {
    return find(this.dataSource.manager, nameOrId, 'team', { scope });
  }
}

/** @throws ServiceError invalid for an unknown provider */
function mustBeKnown(manager: EntityManager, { self_service: allowed }: Partial<NewTeam>): Promise<void> {
  return mustBeKnownProviders(manager, allowed?.providers, 'self_service.providers');
}

function mustNotLookLikeId(name: string): void {
  if (isUuid(name)) throw ServiceError.of('invalid', 'name', 'must not look like an ID; choose another name');
}

/**
 * @param field the field that names the team
 * @throws ServiceError not_found
 */
async function find(
  manager: EntityManager,
  nameOrId: string,
  field: string,
  { scope = null, lock = '' }: { scope?: Scope; lock?: '' | 'FOR UPDATE' } = {},
): Promise<TeamView> {
  const sql = `${isUuid(nameOrId) ? FIND_BY_ID : FIND_BY_NAME} ${lock}`;
  const [row] = await manager.query<TeamRow[]>(sql, [nameOrId, scope]);
  if (row !== undefined) return teamView(row);
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

import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import { audited, differing, lockRow, type Subject } from '../audit/audited.js';
import { idOfCursor, isUuid, type Page, pageOf, type PageRequest } from '../database/page.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { changedLimits, NO_LIMITS, sameLimits, withoutLimits } from '../limit-rules/stored-rules.js';
import { mustBeUsable } from '../providers/team-providers.js';
import { GatewayKey } from './gateway-key.entity.js';
import {
  columnsOf,
  insertKey,
  insertSecret,
  type IssuedKey,
  type KeyGrant,
  type RotatedKey,
} from './insert-key.js';
import { type KeyAttention, keyAttention } from './key-attention.js';
import { listQuery } from './key-list.js';
import { FIND_KEY, fullName, KEY_STATUS_SQL, type KeyRow, keyView } from './key-view.js';
import { KEY_STATUSES, type KeyCounts, type KeyFilter, type KeyView } from './keys.schema.js';
import { isOwnSql, ownerValues } from './own-key.js';
import type { Expected } from '../database/revision.js';
import type { Access, Scope } from '../admin/access/access.js';
import { TeamsService } from '../teams/teams.service.js';

/** A new key; `team` is a name or an ID. */
export type NewKey = KeyGrant & LimitMembers & { team: string };

/** Fields of a key that can be changed. */
export type KeyChange = Partial<
  Omit<KeyGrant, 'member' | 'personId' | 'secret' | 'latestExpiry'> & { disabled: boolean }
> &
  LimitMembers;

/** Of each team that has keys. */
const COUNTS = `
  SELECT team_id AS id, ${KEY_STATUSES.map((status) => `count(*) FILTER (WHERE status = '${status}')::int AS ${status}`).join(', ')}
  FROM (SELECT k.team_id, ${KEY_STATUS_SQL} AS status FROM gateway_key k JOIN team t ON t.id = k.team_id) AS keys
  WHERE ($1::uuid IS NULL OR team_id < $1) AND ($2::uuid[] IS NULL OR team_id = ANY ($2))
  GROUP BY team_id ORDER BY team_id DESC LIMIT $3`;

const FIND_IN_SCOPE = `${FIND_KEY} AND ($2::uuid[] IS NULL OR k.team_id = ANY ($2))`;

const IS_OWN = `SELECT ${isOwnSql(2)} AS own FROM gateway_key k WHERE k.id = $1`;

/** A second secret in a grace would be a third that works. */
const END_OLDER_SECRETS = `
  UPDATE gateway_key_secret SET expires_at = now() WHERE key_id = $1 AND kind = 'key' AND expires_at > now()
  RETURNING id, prefix`;

/** Only the current secret has no expiry time. */
const END_SECRET = `
  UPDATE gateway_key_secret SET expires_at = now() + make_interval(secs => $2) WHERE key_id = $1 AND expires_at IS NULL`;

/**
 * One statement for any number of tokens. The clock, because a token that is being issued may be younger than the transaction.
 * The only change of the row: a second one would check its foreign keys, and lock the team after the key.
 */
const END_TOKENS = `
  UPDATE gateway_key SET tokens_valid_from = clock_timestamp(), version = version + 1 WHERE id = $1
  RETURNING tokens_valid_from`;

/** Creates, lists, changes and revokes gateway keys. Each change is one transaction, see change(). */
@Injectable()
export class KeysService {
  constructor(
    private readonly manager: EntityManager,
    private readonly teams: TeamsService,
    private readonly limits: LimitRules,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): KeysService {
    return new KeysService(manager, this.teams.in(manager), this.limits);
  }

  /**
   * Creates a key. The result contains its secret, which is not stored.
   *
   * @param check runs first in the transaction
   * @throws ServiceError not_found for an unknown team, invalid for an unknown provider, conflict if the team has a key of
   *   this name, revoked ones included
   */
  async create(
    { team, ...grant }: NewKey,
    by: Actor,
    check?: (manager: EntityManager) => Promise<void>,
  ): Promise<IssuedKey> {
    const { id: teamId, providers } = await this.teams.resolve(team);
    // Those of a person's or a member's key are its team's, which were known; one that is gone allows nothing.
    if (grant.member === undefined && grant.personId === undefined)
      await mustBeUsable(this.manager, { id: teamId, providers }, grant.providers);
    const limits = changedLimits(NO_LIMITS, grant);
    const creating = transacted(this.manager, async (manager) => {
      await check?.(manager);
      return insertKey(manager, teamId, grant, by, (id) => this.limits.save(manager, 'key', id, limits));
    });
    return unlessTaken(creating);
  }

  /** Newest first by default. @throws ServiceError not_found for an unknown team, invalid for a foreign cursor */
  async list({ team, ...filter }: KeyFilter, scope: Scope = null): Promise<Page<KeyView>> {
    const teamId = team === undefined ? null : (await this.teams.resolve(team, scope)).id;
    const { text, values, page } = listQuery(filter, teamId, scope);
    return page(await this.manager.query<KeyRow[]>(text, values));
  }

  /** How many keys teams have, by status. Teams without keys are not listed. */
  async counts({ limit, cursor }: PageRequest, scope: Scope): Promise<Page<KeyCounts>> {
    const values = [idOfCursor(cursor), scope, limit + 1];
    const rows = await this.manager.query<(Omit<KeyCounts, 'team_id'> & { id: string })[]>(COUNTS, values);
    return pageOf(rows, limit, ({ id, ...counts }) => ({ team_id: id, ...counts }));
  }

  /** Keys that expire soon, that nobody uses, or whose old secret is still used. @param shown how many are named */
  attention(scope: Scope, shown: number): Promise<KeyAttention> {
    return keyAttention(this.manager, scope, shown);
  }

  /** @throws ServiceError not_found, also outside the scope */
  get(id: string, scope: Scope = null): Promise<KeyView> {
    return find(this.manager, id, scope);
  }

  /**
   * Changes a key. If nothing differs, the version stays and nothing is recorded.
   *
   * @param as given: somebody who may change only some keys, see change()
   * @param check runs before the change, if something differs
   * @throws ServiceError not_found; invalid for an unknown provider; conflict if it was changed since `expected`, when its
   *   team has a key of this name, or when it is revoked: then only its name can be changed, to free it; invalid for an
   *   owner of a key that a member created for themselves, or no expiry of one that needs recent sign-ins
   */
  async update(
    id: string,
    change: KeyChange,
    by: Actor,
    expected: Expected = null,
    as: Access | null = null,
    check?: (manager: EntityManager, key: KeyView) => Promise<void>,
  ): Promise<KeyView> {
    const work = async (manager: EntityManager, key: KeyView) => {
      // Whoever sends back what they have read changes nothing.
      const isAsRead = change.expiresAt?.toISOString() === key.expires_at;
      const expiresAt = isAsRead ? key.expires_at : (key.latest_expiry ?? key.expires_at);
      const differences = differing({ ...key, expiresAt }, withoutLimits(change));
      const limits = changedLimits(key, change);
      const limitsDiffer = !sameLimits(limits, key);
      if (differences.length === 0 && !limitsDiffer) return null;
      if (differences.includes('owner')) mustNotBeOwn(key);
      await check?.(manager, key);
      // A provider that the key has already may be gone by now.
      if (differences.includes('providers'))
        await mustBeUsable(manager, await this.teams.in(manager).get(key.team_id), change.providers);
      if (limitsDiffer || differences.some((field) => field !== 'name')) mustNotBeRevoked(key);
      if (limitsDiffer) await this.limits.save(manager, 'key', id, limits);
      // What does not differ is left out: it may be the latest expiry, which is not the present one.
      const wanted = differences.includes('expiresAt') ? change.expiresAt : undefined;
      const columns = columnsOf({ ...change, expiresAt: wanted });
      await manager.update(GatewayKey, id, { ...columns, ...latestExpiry(key, wanted) });
      return {};
    };
    return unlessTaken(this.change(id, 'changed', by, expected, work, as));
  }

  /**
   * Adds a new secret, which is returned and not stored. The previous one stops working after the grace, and one that is
   * older at once; so do its tokens.
   *
   * @param graceSeconds 0 ends the previous one at once
   * @param as given: somebody who may change only some keys, see change()
   * @param check runs first in the transaction
   * @throws ServiceError not_found; conflict if it was changed since `expected`, is revoked or expired, or has tokens only
   */
  async rotate(
    id: string,
    graceSeconds: number,
    by: Actor,
    expected: Expected = null,
    as: Access | null = null,
    check?: (manager: EntityManager) => Promise<void>,
  ): Promise<RotatedKey> {
    let secret = '';
    let ended: string[] = [];
    const work = async (manager: EntityManager, before: KeyView) => {
      await check?.(manager);
      mustNotBeRevoked(before);
      mustHaveSecrets(before);
      if (before.expires_at !== null && Date.parse(before.expires_at) <= Date.now()) {
        throw ServiceError.of(
          'conflict',
          'expires_at',
          'is in the past, so no secret would work; change it first',
        );
      }
      // TypeORM returns the rows of an UPDATE with their number.
      const [older] = await manager.query<[{ id: string; prefix: string }[], number]>(END_OLDER_SECRETS, [
        id,
      ]);
      ended = older.map(({ prefix }) => prefix);
      await manager.query(END_SECRET, [id, graceSeconds]);
      const [[tokens]] = await manager.query<[{ tokens_valid_from: Date }[], number]>(END_TOKENS, [id]);
      secret = await insertSecret(manager, id);
      return {
        grace_seconds: graceSeconds,
        ...(ended.length > 0 && { ended_secrets: ended, ended_secret_ids: older.map(({ id }) => id) }),
        tokens_valid_from: tokens!.tokens_valid_from.toISOString(),
      };
    };
    const key = await this.change(id, 'rotated', by, expected, work, as);
    return { key, secret, ended };
  }

  /**
   * Revokes a key with all its secrets, permanently. Revoking it again changes nothing, not even `revoked_at`.
   *
   * @param as given: somebody who may change only some keys, see change()
   * @throws ServiceError not_found; conflict if it was changed since `expected`
   */
  revoke(id: string, by: Actor, expected: Expected = null, as: Access | null = null): Promise<KeyView> {
    const work = async (manager: EntityManager, key: KeyView) => {
      if (key.revoked_at !== null) return null;
      await manager.update(GatewayKey, id, { revokedAt: () => 'now()' });
      return {};
    };
    return this.change(id, 'revoked', by, expected, work, as);
  }

  /**
   * Runs one change and its audit entry, see audited().
   *
   * @param as given: a lead, who may change any key of their teams, or a member, who may change their own there
   * @param work gets the locked key; returns null if there is nothing to do, else further values for the audit entry
   */
  private change(
    id: string,
    action: string,
    by: Actor,
    expected: Expected,
    work: (manager: EntityManager, key: KeyView) => Promise<object | null>,
    as: Access | null = null,
  ): Promise<KeyView> {
    const lock: typeof KEY.lock = async (manager, id) => {
      await KEY.lock(manager, id);
      if (as === null) return id;
      await find(manager, id, as.scope);
      if (as.role === 'lead' || (await isOwn(manager, id, as))) return id;
      throw ServiceError.of('forbidden', 'id', 'this key is not yours; ask an administrator');
    };
    return audited(this.manager, { ...KEY, lock }, { id, action, by, expected }, work);
  }
}

const KEY: Subject<KeyView> = {
  type: 'key',
  lock: lockRow(GatewayKey),
  find: (manager, id) => find(manager, id),
  shown: (key) => key,
  nameOf: fullName,
};

async function find(manager: EntityManager, id: string, scope: Scope = null): Promise<KeyView> {
  const [row] = isUuid(id) ? await manager.query<KeyRow[]>(FIND_IN_SCOPE, [id, scope]) : [];
  if (row === undefined)
    throw ServiceError.of('not_found', 'id', 'no key has this id; list the keys to find it');
  return keyView(row);
}

async function isOwn(manager: EntityManager, id: string, owner: Access): Promise<boolean> {
  const [{ own }] = await manager.query<[{ own: boolean }]>(IS_OWN, [id, ...ownerValues(owner)]);
  return own;
}

/** @throws ServiceError invalid for a key that a member created for themselves */
function mustNotBeOwn({ self_service: isOwn }: KeyView): void {
  if (isOwn)
    throw ServiceError.of('invalid', 'owner', 'is the member who created this key, and cannot be changed');
}

/**
 * The expiry of a key that needs recent sign-ins: the new one is the latest, and the last sign-in counts as before.
 *
 * @throws ServiceError invalid for none
 */
function latestExpiry({ latest_expiry, expires_at }: KeyView, wanted: Date | null | undefined) {
  if (latest_expiry === null || wanted === undefined) return false;
  if (wanted === null)
    throw ServiceError.of(
      'invalid',
      'expires_at',
      'must be a time: this key works only while its owner signs in, and no longer than that time',
    );
  const present = new Date(expires_at ?? latest_expiry);
  return { latestExpiry: wanted, expiresAt: wanted < present ? wanted : present };
}

/** @throws ServiceError conflict for a key of sign-ins: its owner would not get the secret, and a secret has no end */
function mustHaveSecrets({ origin }: KeyView): void {
  if (origin === 'sign_in')
    throw ServiceError.of(
      'conflict',
      'origin',
      'this key is for sign-ins and has no secret; revoke it, or end its sign-ins',
    );
}

function mustNotBeRevoked({ revoked_at }: Pick<KeyView, 'revoked_at'>): void {
  if (revoked_at === null) return;
  throw ServiceError.of('conflict', 'revoked_at', 'this key is revoked permanently; create another');
}

async function unlessTaken<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isUniqueViolation(error, 'gateway_key_team_id_name_key')) throw error;
    throw ServiceError.of(
      'conflict',
      'name',
      'this team already has a key with this name; choose another name',
    );
  }
}

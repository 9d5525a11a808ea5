import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import { idOfCursor, isUuid, type Page, pageOf } from '../database/page.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { inTransaction, type Transactions } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { changedLimits, NO_LIMITS, sameLimits } from '../limit-rules/stored-rules.js';
import { mustBeKnownProviders } from '../providers/provider-rows.js';
import { insertKey, insertSecret, type IssuedKey, type KeyGrant, type RotatedKey } from './insert-key.js';
import { FIND_KEY, fullName, KEY_STATUS_SQL, type KeyRow, keyView, SELECT_KEYS } from './key-view.js';
import type { KeyFilter, KeyView } from './keys.schema.js';
import { isOwnSql, ownerValues } from './own-key.js';
import { type Expected, mustBeExpected } from '../database/revision.js';
import type { Access, Scope } from '../admin/access/access.js';
import { TeamsService } from '../teams/teams.service.js';

/** A new key; `team` is a name or an ID. */
export type NewKey = KeyGrant & LimitMembers & { team: string };

/** Fields of a key that can be changed. */
export type KeyChange = Partial<KeyGrant & { disabled: boolean }> & LimitMembers;

const LIST = `${SELECT_KEYS}
  WHERE ($1::uuid IS NULL OR k.team_id = $1)
    AND ($2::text IS NULL OR EXISTS (
      SELECT FROM gateway_key_secret WHERE key_id = k.id AND starts_with(prefix, $2)))
    AND ($3::text IS NULL OR $3 = ${KEY_STATUS_SQL})
    AND ($4::uuid IS NULL OR k.id < $4)
    AND ($5::text IS NULL OR k.name = $5)
    AND ($7::uuid[] IS NULL OR k.team_id = ANY ($7))
  ORDER BY k.id DESC
  LIMIT $6`;

const FIND_IN_SCOPE = `${FIND_KEY} AND ($2::uuid[] IS NULL OR k.team_id = ANY ($2))`;

const IS_OWN = `SELECT ${isOwnSql(2)} AS own FROM gateway_key k WHERE k.id = $1`;

/** A separate statement, so that the next read sees everything committed before the lock. */
const LOCK = 'SELECT FROM gateway_key WHERE id = $1 FOR UPDATE';

const UPDATE = `
  UPDATE gateway_key
  SET name = $2, expires_at = $3, providers = $4, endpoints = $5, idempotency = $6, disabled = $7, models = $8,
      stream_usage = $9, websockets = $10, cache = $11, version = version + 1
  WHERE id = $1`;

const REVOKE = 'UPDATE gateway_key SET revoked_at = now(), version = version + 1 WHERE id = $1';

const COUNT_ROTATION = 'UPDATE gateway_key SET version = version + 1 WHERE id = $1';

/** A second secret in a grace would be a third that works. */
const END_OLDER_SECRETS = `
  UPDATE gateway_key_secret SET expires_at = now() WHERE key_id = $1 AND expires_at > now() RETURNING prefix`;

/** Only the current secret has no expiry time. */
const END_SECRET = `
  UPDATE gateway_key_secret SET expires_at = now() + make_interval(secs => $2) WHERE key_id = $1 AND expires_at IS NULL`;

/** Creates, lists, changes and revokes gateway keys. Each change is one transaction, see change(). */
@Injectable()
export class KeysService {
  constructor(
    @InjectDataSource() private readonly dataSource: Transactions,
    private readonly teams: TeamsService,
    private readonly limits: LimitRules,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): KeysService {
    return new KeysService(inTransaction(manager), this.teams.in(manager), this.limits);
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
    const { id: teamId } = await this.teams.resolve(team);
    // Those of a member's key are its team's, which were known; one that is gone allows nothing.
    if (grant.owner === undefined) await mustBeKnownProviders(this.dataSource.manager, grant.providers);
    const limits = changedLimits(NO_LIMITS, grant);
    const creating = this.dataSource.transaction(async (manager) => {
      await check?.(manager);
      return insertKey(manager, teamId, grant, by, (id) => this.limits.save(manager, 'key', id, limits));
    });
    return unlessTaken(creating);
  }

  /** Newest first. @throws ServiceError not_found for an unknown team, invalid for a foreign cursor */
  async list(
    { team, name, prefix, status, limit, cursor }: KeyFilter,
    scope: Scope = null,
  ): Promise<Page<KeyView>> {
    const after = idOfCursor(cursor);
    const teamId = team === undefined ? null : (await this.teams.resolve(team, scope)).id;
    const values = [teamId, prefix ?? null, status ?? null, after, name ?? null, limit + 1, scope];
    return pageOf(await this.dataSource.query<KeyRow[]>(LIST, values), limit, keyView);
  }

  /** @throws ServiceError not_found, also outside the scope */
  get(id: string, scope: Scope = null): Promise<KeyView> {
    return find(this.dataSource.manager, id, scope);
  }

  /**
   * Changes a key. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; invalid for an unknown provider; conflict if it was changed since `expected`, when its
   *   team has a key of this name, or when it is revoked: then only its name can be changed, to free it
   */
  async update(id: string, change: KeyChange, by: Actor, expected: Expected = null): Promise<KeyView> {
    const changing = this.change(id, 'changed', by, expected, async (manager, key) => {
      const present = { ...key, expiresAt: key.expires_at && new Date(key.expires_at) };
      const wanted = { ...present, ...change };
      const fields = [
        'name',
        'expiresAt',
        'providers',
        'endpoints',
        'idempotency',
        'disabled',
        'models',
        'stream_usage',
        'websockets',
        'cache',
      ] as const;
      const differing = fields.filter(
        (field) => JSON.stringify(wanted[field]) !== JSON.stringify(present[field]),
      );
      const limits = changedLimits(key, change);
      const limitsDiffer = !sameLimits(limits, key);
      if (differing.length === 0 && !limitsDiffer) return null;
      // A provider that the key has already may be gone by now.
      if (differing.includes('providers')) await mustBeKnownProviders(manager, change.providers);
      if (limitsDiffer || differing.some((field) => field !== 'name')) mustNotBeRevoked(key);
      if (limitsDiffer) await this.limits.save(manager, 'key', id, limits);
      await manager.query(UPDATE, [id, ...fields.map((field) => wanted[field])]);
      return {};
    });
    return unlessTaken(changing);
  }

  /**
   * Adds a new secret, which is returned and not stored. The previous one stops working after the grace, and one that is
   * older at once.
   *
   * @param graceSeconds 0 ends the previous one at once
   * @param owner given: the key must be theirs
   * @param check runs first in the transaction
   * @throws ServiceError not_found; conflict if it was changed since `expected`, or is revoked or expired
   */
  async rotate(
    id: string,
    graceSeconds: number,
    by: Actor,
    expected: Expected = null,
    owner: Access | null = null,
    check?: (manager: EntityManager) => Promise<void>,
  ): Promise<RotatedKey> {
    let secret = '';
    let ended: string[] = [];
    const work = async (manager: EntityManager, before: KeyView) => {
      await check?.(manager);
      mustNotBeRevoked(before);
      if (before.expires_at !== null && Date.parse(before.expires_at) <= Date.now()) {
        throw ServiceError.of(
          'conflict',
          'expires_at',
          'is in the past, so no secret would work; change it first',
        );
      }
      // TypeORM returns the rows of an UPDATE with their number.
      const [older] = await manager.query<[{ prefix: string }[], number]>(END_OLDER_SECRETS, [id]);
      ended = older.map(({ prefix }) => prefix);
      await manager.query(END_SECRET, [id, graceSeconds]);
      secret = await insertSecret(manager, id);
      await manager.query(COUNT_ROTATION, [id]);
      return { grace_seconds: graceSeconds, ...(ended.length > 0 && { ended_secrets: ended }) };
    };
    const key = await this.change(id, 'rotated', by, expected, work, owner);
    return { key, secret, ended };
  }

  /**
   * Revokes a key with all its secrets, permanently. Revoking it again changes nothing, not even `revoked_at`.
   *
   * @param owner given: the key must be theirs
   * @throws ServiceError not_found; conflict if it was changed since `expected`
   */
  revoke(id: string, by: Actor, expected: Expected = null, owner: Access | null = null): Promise<KeyView> {
    const work = async (manager: EntityManager, key: KeyView) => {
      if (key.revoked_at !== null) return null;
      await manager.query(REVOKE, [id]);
      return {};
    };
    return this.change(id, 'revoked', by, expected, work, owner);
  }

  /**
   * Runs one change and its audit entry in a transaction.
   *
   * @param work gets the locked key; returns null if there is nothing to do, else further values for the audit entry
   */
  private change(
    id: string,
    action: string,
    by: Actor,
    expected: Expected,
    work: (manager: EntityManager, key: KeyView) => Promise<object | null>,
    owner: Access | null = null,
  ): Promise<KeyView> {
    return this.dataSource.transaction(async (manager) => {
      if (isUuid(id)) await manager.query(LOCK, [id]);
      const before = await find(manager, id, owner?.scope);
      if (owner !== null && !(await isOwn(manager, id, owner)))
        throw ServiceError.of('forbidden', 'id', 'this key is not yours; ask an administrator');
      mustBeExpected('key', before, expected);
      const more = await work(manager, before);
      if (more === null) return before;
      const after = await find(manager, id);
      await recordChange(manager, by, { action, type: 'key', name: fullName(after), before, after, more });
      return after;
    });
  }
}

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

import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, type Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, type Subject } from '../../audit/audited.js';
import { recordChange } from '../../audit/record-change.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { isUuid, type Page, pageOf, type PageRequest, pageOptions } from '../../database/page.js';
import type { Expected } from '../../database/revision.js';
import { isUniqueViolation } from '../../database/sql-state.js';
import { transacted } from '../../database/transactions.js';
import { type ErrorDetail, ServiceError } from '../../errors/service-error.js';
import type { Actor } from '../../platform/actor.js';
import { problemsOf } from './conditions.js';
import { DELETE_TRUST } from './issued-tokens.js';
import { PRESETS } from './presets.js';
import { TrustDirectory } from './trust-directory.service.js';
import { TrustFailure } from './trust-failure.entity.js';
import { KEPT } from './trust-failures.service.js';
import { Trust } from './trust.entity.js';
import type { NewTrust, TrustChange, TrustFailureView, TrustView } from './trusts.schema.js';

/** Locked before their trust, as `apply` locks the tables. */
const FIND_KEYS = `
  SELECT k.id, k.revoked_at IS NOT NULL AS revoked, k.origin = 'sign_in' AS personal FROM gateway_key k JOIN team t ON t.id = k.team_id
  WHERE k.id::text = $1 OR t.name || '/' || k.name = $1 FOR KEY SHARE OF k`;

/** IS_ENABLED for tokens of trusts alone: the joins and the choice for other kinds take as long as the rest. */
const COUNT_LIVE = `
  SELECT s.trust_id AS id, count(*)::int AS live
  FROM gateway_key_secret s JOIN trust tr ON tr.id = s.trust_id JOIN gateway_key k ON k.id = s.key_id
  JOIN team t ON t.id = k.team_id
  WHERE s.trust_id = ANY ($1) AND s.expires_at > now() AND tr.enabled AND k.revoked_at IS NULL AND NOT k.disabled
    AND NOT t.disabled AND COALESCE(k.expires_at > now(), true) AND COALESCE(s.created_at > k.tokens_valid_from, true)
  GROUP BY 1`;

const FIND_NAMES = `
  SELECT k.id, t.name || '/' || k.name AS name FROM gateway_key k JOIN team t ON t.id = k.team_id WHERE k.id = ANY ($1)`;

/** Creates, finds, changes and removes trusts. */
@Injectable()
export class TrustsService {
  constructor(
    @InjectRepository(Trust) private readonly trusts: Repository<Trust>,
    private readonly directory: TrustDirectory,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): TrustsService {
    return new TrustsService(manager.getRepository(Trust), this.directory, this.env);
  }

  /** @throws ServiceError conflict if the name is taken; not_found for an unknown key; invalid for conditions that others could meet */
  async create({ key, ...settings }: NewTrust, by: Actor): Promise<TrustView> {
    mustNotLookLikeId(settings.name);
    const creating = transacted(this.trusts.manager, async (manager) => {
      const id = uuidv7();
      const columns = columnsOf(this.complete(settings)) as Columns;
      this.check(columns);
      await manager.insert(Trust, { id, keyId: await keyOf(manager, key), ...columns });
      const after = await find(manager, id);
      const change = { action: 'created', type: 'trust', before: null, after: recorded(after) };
      await recordChange(manager, by, change);
      return after;
    });
    return this.inForce(unlessTaken(creating));
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list(page: PageRequest): Promise<Page<TrustView>> {
    const trusts = await this.trusts.find(pageOptions(page));
    return viewsOf(
      this.trusts.manager,
      pageOf(trusts, page.limit, (trust) => trust),
    );
  }

  /** @throws ServiceError not_found */
  get(nameOrId: string): Promise<TrustView> {
    return find(this.trusts.manager, nameOrId);
  }

  /** @throws ServiceError not_found */
  find(nameOrId: string): Promise<Trust> {
    return findTrust(this.trusts.manager, nameOrId);
  }

  /** The last tokens that a trust has not accepted, newest first. @throws ServiceError not_found */
  async failures(nameOrId: string): Promise<TrustFailureView[]> {
    const { id: trustId } = await this.get(nameOrId);
    const failures = await this.trusts.manager.find(TrustFailure, {
      where: { trustId },
      order: { id: 'DESC' },
      take: KEPT,
    });
    return failures.map(({ id, at, reason, claims }) => ({ id, at: at.toISOString(), reason, claims }));
  }

  /**
   * Changes a trust. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; conflict if it was changed since `expected`, or the name is taken; invalid as for create()
   */
  async update(
    nameOrId: string,
    change: TrustChange,
    by: Actor,
    expected: Expected = null,
  ): Promise<TrustView> {
    if (change.name !== undefined) mustNotLookLikeId(change.name);
    const request = { id: nameOrId, action: 'changed', by, expected };
    const { key, ...settings } = change;
    let givenKey: string | undefined;
    const lock: typeof TRUST.lock = async (manager, nameOrId) => {
      if (key !== undefined) {
        // An unknown trust is named before an unknown key.
        await findTrust(manager, nameOrId);
        givenKey = await keyOf(manager, key);
      }
      return TRUST.lock(manager, nameOrId);
    };
    const changing = audited(this.trusts.manager, { ...TRUST, lock }, request, async (manager, before) => {
      const keyId = givenKey ?? before.key_id;
      const next = { ...columnsOf(before), ...columnsOf(settings), keyId };
      // Not by their JSON: jsonb has an order of its own.
      if (isDeepStrictEqual(next, { ...columnsOf(before), keyId: before.key_id })) return null;
      this.check(next as Columns);
      await manager.update(Trust, before.id, { ...columnsOf(settings), keyId });
      return {};
    });
    return this.inForce(unlessTaken(changing));
  }

  /** Its tokens end with it. @throws ServiceError not_found; conflict if it was changed since `expected` */
  async remove(nameOrId: string, by: Actor, expected: Expected = null): Promise<void> {
    const request = { id: nameOrId, action: 'removed', by, expected, removes: true };
    await this.inForce(
      audited(this.trusts.manager, TRUST, request, async (manager, { id }) => {
        await manager.query(DELETE_TRUST, [id]);
        return {};
      }),
    );
  }

  /** Fills in what a preset and the settings of the gateway say. @throws ServiceError invalid without an issuer or an audience */
  complete<T extends Pick<NewTrust, 'preset' | 'issuer' | 'audience' | 'longest_jwt_minutes'>>(settings: T) {
    const preset = PRESETS[settings.preset];
    const { gatewayUrl, publicUrl } = this.env;
    return {
      ...settings,
      issuer: given(settings.issuer ?? preset.issuer, 'issuer', 'must be given: it is the iss of the tokens'),
      audience: given(
        settings.audience ?? gatewayUrl ?? publicUrl ?? null,
        'audience',
        'must be given, because neither GATEWAY_URL nor PUBLIC_URL is set',
      ),
      longest_jwt_minutes: settings.longest_jwt_minutes ?? preset.longestJwtMinutes,
    };
  }

  /** Reads the trusts again, after a change that was part of a larger transaction. */
  refresh(): Promise<void> {
    return this.directory.refresh();
  }

  /** @throws ServiceError invalid */
  private check({ preset, issuer, claims, anyRef, audience }: Settled): void {
    const problems: ErrorDetail[] = problemsOf(preset, issuer, claims, anyRef);
    // Otherwise an ID token of anybody who signs in to the console would be accepted.
    if (this.env.oidcClientId !== undefined && audience === this.env.oidcClientId)
      problems.push({
        field: 'audience',
        message: 'must not be OIDC_CLIENT_ID; choose one for this gateway',
      });
    if (problems.length === 0) return;
    const message = problems.map((problem) => `${problem.field}: ${problem.message}`).join('; ');
    throw new ServiceError('invalid', message, problems);
  }

  /** A change that is part of a larger transaction takes effect when that is committed. */
  private async inForce<T>(changing: Promise<T>): Promise<T> {
    const result = await changing;
    if (!this.trusts.manager.queryRunner?.isTransactionActive) await this.directory.refresh();
    return result;
  }
}

type Settled = Pick<Trust, 'preset' | 'issuer' | 'claims' | 'anyRef' | 'audience'>;

/** The columns that people set. */
type Columns = Omit<Trust, 'id' | 'keyId' | 'createdAt' | 'lastUsedAt' | 'version'>;

/** The columns of these settings, without what is undefined. */
function columnsOf<S extends Omit<TrustChange, 'key'> & Partial<Pick<NewTrust, 'preset'>>>(settings: S) {
  const { any_ref, token_minutes, longest_jwt_minutes, max_live } = settings;
  const { name, preset, issuer, audience, jwks, claims, cidrs, enabled } = settings;
  const columns: Partial<Columns> = {
    ...{ name, preset, issuer, audience, jwks, claims, cidrs, enabled },
    anyRef: any_ref,
    tokenMinutes: token_minutes,
    longestJwtMinutes: longest_jwt_minutes,
    maxLive: max_live,
  };
  return Object.fromEntries(
    Object.entries(columns).filter(([, value]) => value !== undefined),
  ) as Partial<Columns>;
}

const TRUST: Subject<TrustView> = {
  type: 'trust',
  lock: async (manager, nameOrId) => {
    const { id } = await find(manager, nameOrId);
    await manager.findOne(Trust, { where: { id }, lock: { mode: 'pessimistic_write' } });
    return id;
  },
  find,
  shown: recorded,
};

/** What the audit log has of a trust: not what its use changes. */
function recorded({ live_tokens: _, ...trust }: TrustView) {
  return trust;
}

async function find(manager: EntityManager, nameOrId: string): Promise<TrustView> {
  const trust = await findTrust(manager, nameOrId);
  const { data } = await viewsOf(manager, { data: [trust], next_cursor: null });
  return data[0]!;
}

/** @throws ServiceError not_found */
async function findTrust(manager: EntityManager, nameOrId: string): Promise<Trust> {
  const trust = await manager.findOneBy(Trust, isUuid(nameOrId) ? { id: nameOrId } : { name: nameOrId });
  if (trust !== null) return trust;
  throw ServiceError.of('not_found', 'id', 'no trust has this name or id; list the trusts to find it');
}

/** @throws ServiceError not_found; conflict for a revoked key, and for one of sign-ins; invalid if two keys are called so */
async function keyOf(manager: EntityManager, key: string): Promise<string> {
  const found = await manager.query<{ id: string; revoked: boolean; personal: boolean }[]>(FIND_KEYS, [key]);
  if (found.length === 0)
    throw ServiceError.of('not_found', 'key', 'no key has this ID or team/name; list the keys to find it');
  if (found.length > 1) throw ServiceError.of('invalid', 'key', 'is the name of two keys; give the ID');
  if (found[0]!.revoked)
    throw ServiceError.of('conflict', 'key', 'this key is revoked permanently; choose another');
  // It would outlive the access of its person, and `apply` does not know it.
  if (found[0]!.personal)
    throw ServiceError.of('conflict', 'key', 'this key is for the sign-ins of a person; choose another');
  return found[0]!.id;
}

async function viewsOf(manager: EntityManager, { data, next_cursor }: Page<Trust>): Promise<Page<TrustView>> {
  const ids = data.map(({ keyId }) => keyId);
  const rows = ids.length === 0 ? [] : await manager.query<{ id: string; name: string }[]>(FIND_NAMES, [ids]);
  const names = new Map(rows.map(({ id, name }) => [id, name]));
  const counts =
    data.length === 0
      ? []
      : await manager.query<{ id: string; live: number }[]>(COUNT_LIVE, [data.map(({ id }) => id)]);
  const live = new Map(counts.map((count) => [count.id, count.live]));
  return {
    data: data.map((trust) => trustView(trust, names.get(trust.keyId)!, live.get(trust.id) ?? 0)),
    next_cursor,
  };
}

/** Lists each field, so that a new column is not shown by accident. */
function trustView(trust: Trust, key: string, liveTokens: number): TrustView {
  const { id, name, keyId, preset, issuer, audience, jwks, claims, anyRef, cidrs, enabled, version } = trust;
  return {
    ...{ id, name, key, key_id: keyId, preset, issuer, audience, jwks, claims, any_ref: anyRef, cidrs },
    token_minutes: trust.tokenMinutes,
    longest_jwt_minutes: trust.longestJwtMinutes,
    max_live: trust.maxLive,
    enabled,
    created_at: trust.createdAt.toISOString(),
    last_used_at: trust.lastUsedAt?.toISOString() ?? null,
    live_tokens: liveTokens,
    version,
  };
}

function given(value: string | null, field: string, remedy: string): string {
  if (value !== null) return value;
  throw ServiceError.of('invalid', field, remedy);
}

function mustNotLookLikeId(name: string): void {
  if (isUuid(name)) throw ServiceError.of('invalid', 'name', 'must not look like an ID; choose another name');
}

async function unlessTaken<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isUniqueViolation(error, 'trust_name_key')) throw error;
    throw ServiceError.of('conflict', 'name', 'a trust with this name already exists; choose another name');
  }
}

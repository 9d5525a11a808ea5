import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager, FindOneOptions, Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, type Subject } from '../audit/audited.js';
import { recordChange } from '../audit/record-change.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { isUuid } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { shownUrl } from '../platform/provider-url.js';
import { callHeader } from './decision/call-facts.js';
import { decisionOf } from './decision/decision.js';
import { PolicyFailure, type Question } from './decision/rule.js';
import { PolicyDirectory } from './policy-directory.service.js';
import { PolicyReceiver } from './policy-receiver.js';
import { PolicySecrets } from './policy-secrets.service.js';
import { named, type NamedPolicy, policyView, settingsOf, testFailure, testResult } from './policy-view.js';
import { StoredPolicy } from './policy.entity.js';
import type {
  NewPolicy,
  PolicyChange,
  PolicyScope,
  PolicyTestResult,
  PolicyView,
  TestedCall,
} from './policies.schema.js';

/** Each call may wait for all of them, one after the other. */
const MAX_POLICIES = 20;

/** A separate statement, so that the next read sees everything committed before the lock. */
const LOCK_ALL = 'LOCK TABLE policy IN SHARE ROW EXCLUSIVE MODE';
const FIND_TEAMS = 'SELECT id FROM team WHERE id::text = $1 OR name = $1';
const FIND_KEYS = `
  SELECT k.id, k.team_id FROM gateway_key k JOIN team t ON t.id = k.team_id
  WHERE k.id::text = $1 OR t.name || '/' || k.name = $1`;

const POLICY: Subject<NamedPolicy> = {
  type: 'policy',
  lock: async (manager, id) => (await findRow(manager, id, { mode: 'pessimistic_write' })).id,
  find,
  shown: settingsOf,
};

/** Creates, shows, changes, tests and removes policies. */
@Injectable()
export class PoliciesService {
  constructor(
    @InjectRepository(StoredPolicy) private readonly policies: Repository<StoredPolicy>,
    private readonly secrets: PolicySecrets,
    private readonly directory: PolicyDirectory,
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): PoliciesService {
    const policies = manager.getRepository(StoredPolicy);
    return new PoliciesService(policies, this.secrets, this.directory, this.env, this.host);
  }

  /** @throws ServiceError conflict if the name is taken or there are as many policies as there may be; invalid for unknown teams or keys */
  create({ url, secret, applies_to, ...settings }: NewPolicy, by: Actor): Promise<PolicyView> {
    const id = uuidv7();
    const sealed = this.secrets.seal(id, { url, secret });
    const creating = transacted(this.policies.manager, async (manager) => {
      await manager.query(LOCK_ALL);
      if ((await manager.count(StoredPolicy)) >= MAX_POLICIES)
        throw new ServiceError('conflict', `There can be ${MAX_POLICIES} policies; remove one first.`);
      await mustBeFree(manager, settings.name);
      const scope = await scopeOf(manager, applies_to);
      const columns = { ...columnsOf(settings), ...scope } as StoredPolicy;
      await manager.insert(StoredPolicy, { ...columns, id, shownUrl: shownUrl(url), sealed });
      const policy = await find(manager, id);
      await recordChange(manager, by, {
        action: 'created',
        type: 'policy',
        before: null,
        after: settingsOf(policy),
      });
      return this.view(policy);
    });
    return this.inForce(creating);
  }

  /** In the order in which they are asked. */
  async list(): Promise<PolicyView[]> {
    const policies = await this.policies.find({ order: { runOrder: 'ASC', name: 'ASC' } });
    return (await named(this.policies.manager, policies)).map((policy) => this.view(policy));
  }

  /** @throws ServiceError not_found */
  async get(nameOrId: string): Promise<PolicyView> {
    return this.view(await find(this.policies.manager, nameOrId));
  }

  /**
   * Changes a policy. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; invalid as for create(); conflict if it was changed since `expected`, the name is taken, or
   *   it cannot be decrypted
   */
  async update(
    nameOrId: string,
    change: PolicyChange,
    by: Actor,
    expected: Expected = null,
  ): Promise<PolicyView> {
    const request = { id: nameOrId, action: 'changed', by, expected };
    const changing = audited(this.policies.manager, POLICY, request, async (manager, row) => {
      const { url, secret, applies_to, ...settings } = change;
      if (settings.name !== undefined && settings.name !== row.name) await mustBeFree(manager, settings.name);
      // With both, what is stored is not needed, and may be unreadable.
      const present =
        url !== undefined && secret !== undefined
          ? this.secrets.tryOpen(row.id, row.sealed)
          : this.secrets.mustOpen(row.id, row.sealed);
      const target = { url: url ?? present!.url, secret: secret ?? present!.secret };
      const scope = applies_to === undefined ? {} : await scopeOf(manager, applies_to);
      const columns = { ...columnsOf(settings), ...scope };
      const isMoved = target.url !== present?.url;
      const isResigned = target.secret !== present?.secret;
      const isSame = Object.entries(columns).every(([name, value]) =>
        isDeepStrictEqual(value, row[name as keyof StoredPolicy]),
      );
      if (isSame && !isMoved && !isResigned) return null;
      const sealed = this.secrets.seal(row.id, target);
      const shown = shownUrl(target.url);
      await manager.update(StoredPolicy, row.id, { ...columns, shownUrl: shown, sealed });
      // What differs is hidden.
      return {
        ...(isMoved && shown === row.shownUrl && { url: 'changed' }),
        ...(isResigned && { secret: 'changed' }),
      };
    });
    return this.view(await this.inForce(changing));
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected` */
  async remove(nameOrId: string, by: Actor, expected: Expected = null): Promise<void> {
    const request = { id: nameOrId, action: 'removed', by, expected, removes: true };
    const removing = audited(this.policies.manager, POLICY, request, async (manager, { id }) => {
      await manager.delete(StoredPolicy, id);
      return {};
    });
    await this.inForce(removing);
  }

  /**
   * Asks a policy about a call that is made up, whether it applies to it or not.
   *
   * @throws ServiceError not_found, also for the key; conflict if it cannot be decrypted
   */
  async test(nameOrId: string, tested: TestedCall): Promise<PolicyTestResult> {
    const policy = await findRow(this.policies.manager, nameOrId);
    const target = this.secrets.mustOpen(policy.id, policy.sealed);
    const key = tested.key === null ? null : await keyOf(this.policies.manager, tested.key, 'key');
    const id = uuidv7();
    const { endpoint, model, end_user, body } = tested;
    const facts = {
      ...{ request_id: id, team_id: key?.team_id ?? null, key_id: key?.id ?? null, end_user, model },
      ...{ method: 'POST', endpoint, body_bytes: Buffer.byteLength(body), tags: {} },
    };
    const isSent = policy.send === 'body';
    const question: Question = {
      id,
      call: callHeader(facts),
      body: isSent ? Buffer.from(body) : null,
      headers: isSent ? { 'content-type': 'application/json' } : {},
    };
    const receiver = new PolicyReceiver(target, policy.timeoutMs, this.env, this.host);
    const startedAt = performance.now();
    try {
      const response = await receiver.ask(question, new AbortController().signal);
      return testResult(decisionOf(response), performance.now() - startedAt);
    } catch (error) {
      if (!(error instanceof PolicyFailure)) throw error;
      return testFailure(error.code, performance.now() - startedAt);
    } finally {
      await receiver.close();
    }
  }

  /** Reads the policies again, after a change that was part of a larger transaction. */
  refresh(): Promise<void> {
    return this.directory.refresh();
  }

  /** A change that is part of a larger transaction takes effect when that is committed. */
  private async inForce<T>(changing: Promise<T>): Promise<T> {
    const result = await changing;
    if (!this.policies.manager.queryRunner?.isTransactionActive) await this.directory.refresh();
    return result;
  }

  private view(policy: NamedPolicy): PolicyView {
    return policyView(policy, this.secrets.isReadable(policy.id, policy.sealed));
  }
}

/** The columns of these settings, without what is undefined. */
function columnsOf(settings: Omit<PolicyChange, 'url' | 'secret' | 'applies_to'>): Partial<StoredPolicy> {
  const { name, send, enabled, timeout_ms, on_failure, cache_seconds, order } = settings;
  const columns: Partial<StoredPolicy> = {
    ...{ name, send, enabled },
    timeoutMs: timeout_ms,
    onFailure: on_failure,
    cacheSeconds: cache_seconds,
    runOrder: order,
  };
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined));
}

/** In an order of their own, so that another order is no change. @throws ServiceError invalid */
async function scopeOf(manager: EntityManager, { teams, keys, models }: PolicyScope) {
  const ids = async (names: string[] | null, idOf: (name: string) => Promise<string>) => {
    if (names === null) return null;
    const found: string[] = [];
    for (const name of names) found.push(await idOf(name));
    return [...new Set(found)].sort();
  };
  return {
    teamIds: await ids(teams, (team) => teamOf(manager, team)),
    keyIds: await ids(keys, async (key) => (await keyOf(manager, key, 'applies_to.keys')).id),
    models,
  };
}

async function teamOf(manager: EntityManager, team: string): Promise<string> {
  const [found] = await manager.query<{ id: string }[]>(FIND_TEAMS, [team]);
  if (found !== undefined) return found.id;
  throw ServiceError.of(
    'invalid',
    'applies_to.teams',
    `no team has the name or id ${team}; list the teams to find it`,
  );
}

async function keyOf(
  manager: EntityManager,
  key: string,
  field: string,
): Promise<{ id: string; team_id: string }> {
  const [found, other] = await manager.query<{ id: string; team_id: string }[]>(FIND_KEYS, [key]);
  if (found === undefined)
    throw ServiceError.of(
      'invalid',
      field,
      `no key is ${key}; give its ID, or team/name as in the list of keys`,
    );
  if (other !== undefined)
    throw ServiceError.of('invalid', field, `${key} is the name of two keys; give the ID`);
  return found;
}

/** By its ID or its name. */
async function findRow(
  manager: EntityManager,
  nameOrId: string,
  lock?: FindOneOptions['lock'],
): Promise<StoredPolicy> {
  const where = isUuid(nameOrId) ? { id: nameOrId } : { name: nameOrId };
  const policy = await manager.findOne(StoredPolicy, { where, lock });
  if (policy !== null) return policy;
  throw ServiceError.of('not_found', 'id', 'no policy has this name or id; list the policies to find it');
}

async function find(manager: EntityManager, nameOrId: string): Promise<NamedPolicy> {
  const [policy] = await named(manager, [await findRow(manager, nameOrId)]);
  return policy!;
}

async function mustBeFree(manager: EntityManager, name: string): Promise<void> {
  if (await manager.existsBy(StoredPolicy, { name }))
    throw ServiceError.of('conflict', 'name', 'another policy has this name; choose another one');
}

import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Not, type Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, type Subject } from '../audit/audited.js';
import { recordChange } from '../audit/record-change.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import type { Expected } from '../database/revision.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { mustHaveOneCredentialHost } from '../providers/credential-hosts.js';
import { DEFAULT_PROVIDER, PROVIDER_NAME } from '../providers/provider-name.js';
import { LOCK_CHANGES, mustBeKnownProviders } from '../providers/provider-rows.js';
import { mustBeNoDefaultOfTeam, mustSuitTeams } from '../providers/team-providers.js';
import { StoredRoute, type StoredTarget } from './route.entity.js';
import type { NewRoute, RouteChange, RouteContent, RouteView } from './routes.schema.js';
import { RoutesService } from './routes.service.js';

const ROUTE: Subject<RouteContent> = {
  type: 'route',
  lock: async (manager, name) => {
    await manager.query(LOCK_CHANGES);
    return name;
  },
  find,
  shown: (route) => route,
};

/** Adds, shows and changes routes. */
@Injectable()
export class StoredRoutesService {
  constructor(
    @InjectRepository(StoredRoute) private readonly stored: Repository<StoredRoute>,
    private readonly routes: RoutesService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): StoredRoutesService {
    return new StoredRoutesService(manager.getRepository(StoredRoute), this.routes, this.env);
  }

  /**
   * @throws ServiceError conflict if a route or a provider has the name, or if targets or default do not suit the teams; invalid for an unknown provider, and for targets on
   *   two hosts that get the caller's own credential
   */
  async create({ name, ...settings }: NewRoute, by: Actor): Promise<RouteView> {
    if (name === DEFAULT_PROVIDER) {
      throw ServiceError.of(
        'conflict',
        'name',
        'is reserved for the provider of PROVIDER_URL; choose another name',
      );
    }
    try {
      const creating = transacted(this.stored.manager, async (manager) => {
        await manager.query(LOCK_CHANGES);
        await this.checkTargets(manager, settings.targets);
        if (settings.default) await this.endOtherDefault(manager, name, by);
        await manager.insert(StoredRoute, { id: uuidv7(), name, ...columnsOf(settings) });
        await mustSuitTeams(manager, 'targets');
        const after = await find(manager, name);
        await recordChange(manager, by, { action: 'created', type: 'route', before: null, after });
        return after;
      });
      return this.viewOf(await this.inForce(creating));
    } catch (error) {
      if (!isUniqueViolation(error, 'route_name_key')) throw error;
      throw ServiceError.of(
        'conflict',
        'name',
        'a route or a provider with this name already exists; choose another name',
      );
    }
  }

  /** By name. */
  async list(): Promise<RouteView[]> {
    const rows = await this.stored.find({ order: { name: 'ASC' } });
    return rows.map((row) => this.viewOf(contentOf(row)));
  }

  /** @throws ServiceError not_found */
  async get(name: string): Promise<RouteView> {
    return this.viewOf(await find(this.stored.manager, name));
  }

  /**
   * Changes a route. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; conflict if it was changed since `expected`; both as for create()
   */
  async update(name: string, change: RouteChange, by: Actor, expected: Expected = null): Promise<RouteView> {
    const request = { id: name, action: 'changed', by, expected };
    const changing = audited(this.stored.manager, ROUTE, request, async (manager, before) => {
      const next = { ...before, ...change };
      // Not by their JSON: jsonb has an order of its own.
      if (isDeepStrictEqual(next, before)) return null;
      if (change.targets !== undefined) await this.checkTargets(manager, change.targets);
      if (next.default) await this.endOtherDefault(manager, name, by);
      await manager.update(StoredRoute, before.id, columnsOf(change));
      await mustSuitTeams(manager, change.targets === undefined ? 'default' : 'targets');
      return {};
    });
    return this.viewOf(await this.inForce(changing));
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected`, or is the default of a team */
  async remove(name: string, by: Actor, expected: Expected = null): Promise<void> {
    const request = { id: name, action: 'removed', by, expected, removes: true };
    const removing = audited(this.stored.manager, ROUTE, request, async (manager, { id }) => {
      await mustBeNoDefaultOfTeam(manager, name);
      await manager.delete(StoredRoute, id);
      return {};
    });
    await this.inForce(removing);
  }

  private async checkTargets(manager: EntityManager, targets: readonly StoredTarget[]): Promise<void> {
    const names = targets.map(({ provider }) => provider);
    await mustBeKnownProviders(manager, names, 'targets');
    await mustHaveOneCredentialHost(manager, names, this.env);
  }

  /** With the health of its targets. */
  private viewOf({ targets, ...route }: RouteContent): RouteView {
    return {
      ...route,
      targets: targets.map((target, i) => ({
        ...target,
        resting_until: this.routes.restingUntil(route.name, i, target.provider),
      })),
    };
  }

  /** Ends the default of another route in the same transaction. */
  private async endOtherDefault(manager: EntityManager, name: string, by: Actor): Promise<void> {
    const other = await manager.findOneBy(StoredRoute, { isDefault: true, name: Not(name) });
    if (other === null) return;
    await manager.update(StoredRoute, other.id, { isDefault: false });
    const before = contentOf(other);
    const after = { ...before, default: false };
    await recordChange(manager, by, { action: 'changed', type: 'route', before, after });
  }

  private async inForce<T>(changing: Promise<T>): Promise<T> {
    const result = await changing;
    // If this fails, the change still takes effect by its notification, as on any replica.
    await this.routes.refresh().catch(() => {});
    return result;
  }
}

async function find(manager: EntityManager, name: string): Promise<RouteContent> {
  const route = PROVIDER_NAME.test(name) ? await manager.findOneBy(StoredRoute, { name }) : null;
  if (route !== null) return contentOf(route);
  throw ServiceError.of('not_found', 'name', 'no route has this name; list the routes to find it');
}

/** TypeORM leaves out what is undefined. */
function columnsOf({
  retry_on,
  max_attempts,
  default: isDefault,
  ...others
}: RouteChange): Partial<StoredRoute> {
  return { retryOn: retry_on, maxAttempts: max_attempts, isDefault, ...others };
}

/** Lists each field, so that a new column is not shown by accident. */
function contentOf(row: StoredRoute): RouteContent {
  return {
    id: row.id,
    name: row.name,
    // In the order of the API: Postgres keeps members in one of its own, and a change is compared as JSON.
    targets: row.targets.map(({ provider, models }) => ({ provider, models })),
    strategy: row.strategy,
    retry_on: row.retryOn,
    max_attempts: row.maxAttempts,
    dialect: row.dialect,
    default: row.isDefault,
    version: row.version,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}

import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { recordChange } from '../audit/record-change.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { type Expected, mustBeExpected } from '../database/revision.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { inTransaction, type Transactions } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { mustHaveOneCredentialHost } from '../providers/credential-hosts.js';
import { DEFAULT_PROVIDER, PROVIDER_NAME } from '../providers/provider-name.js';
import { serialized } from '../providers/provider-rows.js';
import type { RouteSettings } from './route.js';
import type { StoredTarget } from './route.entity.js';
import type { NewRoute, RouteChange, RouteContent, RouteView } from './routes.schema.js';
import { RoutesService } from './routes.service.js';

interface RouteRow extends RouteSettings {
  id: string;
  version: number;
  created_at: Date;
  updated_at: Date;
}

const SELECT = `
  SELECT id, name, targets, strategy, retry_on, max_attempts, dialect, is_default, version, created_at, updated_at FROM route`;
const LIST = `${SELECT} ORDER BY name`;
const FIND = `${SELECT} WHERE name = $1`;
const FIND_OTHER_DEFAULT = `${SELECT} WHERE is_default AND name <> $1`;
const PROVIDERS = 'SELECT name FROM provider ORDER BY name';

const INSERT = `
  INSERT INTO route (id, name, targets, strategy, retry_on, max_attempts, dialect, is_default)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
const UPDATE = `
  UPDATE route SET targets = $2, strategy = $3, retry_on = $4, max_attempts = $5, dialect = $6, is_default = $7,
    version = version + 1, updated_at = now()
  WHERE id = $1`;
const DELETE = 'DELETE FROM route WHERE id = $1';

/** Adds, shows and changes routes. */
@Injectable()
export class StoredRoutesService {
  constructor(
    @InjectDataSource() private readonly dataSource: Transactions,
    private readonly routes: RoutesService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): StoredRoutesService {
    return new StoredRoutesService(inTransaction(manager), this.routes, this.env);
  }

  /**
   * @throws ServiceError conflict if a route or a provider has the name; invalid for an unknown provider, and for targets on
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
      const made = await this.change(async (manager) => {
        await this.checkTargets(manager, settings.targets);
        if (settings.default) await this.endOtherDefault(manager, name, by);
        await manager.query(INSERT, [uuidv7(), name, ...valuesOf(settings)]);
        const after = contentOf(await find(manager, name));
        await recordChange(manager, by, { action: 'created', type: 'route', before: null, after });
        return after;
      });
      return this.viewOf(made);
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
    return (await this.dataSource.query<RouteRow[]>(LIST)).map((row) => this.viewOf(contentOf(row)));
  }

  /** @throws ServiceError not_found */
  async get(name: string): Promise<RouteView> {
    return this.viewOf(contentOf(await find(this.dataSource.manager, name)));
  }

  /**
   * Changes a route. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; conflict if it was changed since `expected`; invalid as for create()
   */
  async update(name: string, change: RouteChange, by: Actor, expected: Expected = null): Promise<RouteView> {
    const changed = await this.change(async (manager) => {
      const before = contentOf(await findExpected(manager, name, expected));
      const next = { ...before, ...change };
      // Not by their JSON: jsonb has an order of its own.
      if (isDeepStrictEqual(next, before)) return before;
      if (change.targets !== undefined) await this.checkTargets(manager, change.targets);
      if (next.default) await this.endOtherDefault(manager, name, by);
      await manager.query(UPDATE, [before.id, ...valuesOf(next)]);
      const after = contentOf(await find(manager, name));
      await recordChange(manager, by, { action: 'changed', type: 'route', before, after });
      return after;
    });
    return this.viewOf(changed);
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected` */
  async remove(name: string, by: Actor, expected: Expected = null): Promise<void> {
    await this.change(async (manager) => {
      const before = contentOf(await findExpected(manager, name, expected));
      await manager.query(DELETE, [before.id]);
      await recordChange(manager, by, { action: 'removed', type: 'route', before, after: null });
    });
  }

  private async checkTargets(manager: EntityManager, targets: readonly StoredTarget[]): Promise<void> {
    const names = targets.map(({ provider }) => provider);
    await mustHaveProviders(manager, names);
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
    const [row] = await manager.query<RouteRow[]>(FIND_OTHER_DEFAULT, [name]);
    if (row === undefined) return;
    const before = contentOf(row);
    const after = { ...before, default: false };
    await manager.query(UPDATE, [row.id, ...valuesOf(after)]);
    await recordChange(manager, by, { action: 'changed', type: 'route', before, after });
  }

  private async change<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const result = await serialized(this.dataSource, work);
    // If this fails, the change still takes effect by its notification, as on any replica.
    await this.routes.refresh().catch(() => {});
    return result;
  }
}

async function find(manager: EntityManager, name: string): Promise<RouteRow> {
  const [row] = PROVIDER_NAME.test(name) ? await manager.query<RouteRow[]>(FIND, [name]) : [];
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'name', 'no route has this name; list the routes to find it');
}

async function findExpected(manager: EntityManager, name: string, expected: Expected): Promise<RouteRow> {
  const row = await find(manager, name);
  mustBeExpected('route', row, expected);
  return row;
}

/** `default` is always known: the command line may run without the gateway's PROVIDER_URL. */
async function mustHaveProviders(manager: EntityManager, names: readonly string[]): Promise<void> {
  const stored = await manager.query<{ name: string }[]>(PROVIDERS);
  const known = [DEFAULT_PROVIDER, ...stored.map(({ name }) => name)];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw ServiceError.of(
    'invalid',
    'targets',
    `there is no provider ${unknown.join(', ')}; add it first, or choose from ${known.join(', ')}`,
  );
}

function valuesOf(route: Omit<NewRoute, 'name'>): unknown[] {
  const { targets, strategy, retry_on, max_attempts, dialect } = route;
  return [JSON.stringify(targets), strategy, retry_on, max_attempts, dialect, route.default];
}

/** Lists each field, so that a new column is not shown by accident. */
function contentOf(row: RouteRow): RouteContent {
  return {
    id: row.id,
    name: row.name,
    // In the order of the API: Postgres keeps members in one of its own, and a change is compared as JSON.
    targets: row.targets.map(({ provider, models }) => ({ provider, models })),
    strategy: row.strategy,
    retry_on: row.retry_on,
    max_attempts: row.max_attempts,
    dialect: row.dialect,
    default: row.is_default,
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

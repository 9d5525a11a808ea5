import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { InjectEnv } from '../config/config.module.js';
import type { Env } from '../config/env.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { Fault } from '../fault.js';
import { DEFAULT_PROVIDER, PROVIDER_NAME } from './provider-name.js';
import { ProviderSecrets } from './provider-secrets.service.js';
import {
  environmentView,
  type ProviderRow,
  providerView,
  type ProviderView,
  revisionOf,
  type SecretState,
  SELECT_PROVIDERS,
} from './provider-view.js';
import { makeProvider, type Provider, type ProviderAuth } from './provider.js';
import { ProvidersService } from './providers.service.js';
import { SecretBoxError } from './secret-box.js';

export interface ProviderSettings {
  /** As normaliseProviderUrl gives it. */
  url: string;
  auth: ProviderAuth;
  /** null: it takes none. */
  secret: string | null;
  default: boolean;
  enabled: boolean;
}

export type NewProvider = ProviderSettings & { name: string };

/** Names of providers by what became of their secrets. */
export interface Resealed {
  resealed: string[];
  /** Sealed with the current master key already. */
  current: string[];
  /** Sealed with a key that is neither MASTER_KEY nor MASTER_KEY_PREVIOUS. */
  unreadable: string[];
}

/** Revisions (revisionOf) of which one must be the present one; null: whichever it is. */
export type Expected = readonly string[] | null;

const FIND = `${SELECT_PROVIDERS} WHERE name = $1`;
const FIND_TO_CHANGE = `${FIND} FOR UPDATE`;
const LIST = `${SELECT_PROVIDERS} ORDER BY name`;

/** Changes of providers wait for each other here, so that of two new defaults the later one wins and neither fails. */
const TAKE_TURNS = "SELECT FROM change_counter WHERE name = 'providers' FOR UPDATE";

const INSERT = `
  INSERT INTO provider (id, name, url, auth, sealed_secret, is_default, enabled)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const UPDATE = `
  UPDATE provider
  SET url = $2, auth = $3, sealed_secret = $4, is_default = $5, enabled = $6, version = version + 1, updated_at = now()
  WHERE id = $1`;

const NO_LONGER_DEFAULT = `
  UPDATE provider SET is_default = false, version = version + 1, updated_at = now() WHERE is_default AND name <> $1`;

const LIST_SEALED = 'SELECT name FROM provider WHERE sealed_secret IS NOT NULL ORDER BY name';

const RESEAL = 'UPDATE provider SET sealed_secret = $2 WHERE id = $1';

const DELETE = 'DELETE FROM provider WHERE id = $1';

/** Adds, shows and changes providers. Every change is one transaction, begun in change(). */
@Injectable()
export class StoredProvidersService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: ProviderSecrets,
    private readonly providers: ProvidersService,
    @InjectEnv() private readonly env: Env,
  ) {}

  /** @throws Fault conflict when the name is taken or reserved */
  async create({ name, ...settings }: NewProvider): Promise<ProviderView> {
    if (name === DEFAULT_PROVIDER) {
      throw Fault.of('conflict', 'name', 'is reserved for the provider of PROVIDER_URL; choose another');
    }
    const id = uuidv7();
    try {
      return await this.change(async (manager) => {
        const { url, auth, secret, enabled } = settings;
        if (settings.default) await manager.query(NO_LONGER_DEFAULT, [name]);
        const sealed = secret === null ? null : this.secrets.seal(id, secret);
        await manager.query(INSERT, [id, name, url, auth, sealed, settings.default, enabled]);
        return this.view(await this.find(manager, FIND, name));
      });
    } catch (error) {
      if (!isUniqueViolation(error, 'provider_name_key')) throw error;
      throw Fault.of(
        'conflict',
        'name',
        'a provider of this name exists already; choose another, or change that one',
      );
    }
  }

  /** All of them, the environment's first, then by name. */
  async list(): Promise<ProviderView[]> {
    const rows = await this.dataSource.query<ProviderRow[]>(LIST);
    const own = environmentView(this.env);
    return [...(own === null ? [] : [own]), ...rows.map((row) => this.view(row))];
  }

  /** @throws Fault not_found */
  async get(name: string): Promise<ProviderView> {
    const own = name === DEFAULT_PROVIDER ? environmentView(this.env) : null;
    if (own !== null) return own;
    return this.view(await this.find(this.dataSource.manager, FIND, name));
  }

  /**
   * @throws Fault not_found; conflict when it was changed since `expected`, or is the environment's; invalid when the url
   *   moves to another origin without the secret: else whoever may write a url could have a secret sent to themselves
   */
  async update(
    name: string,
    settings: Partial<ProviderSettings>,
    expected: Expected = null,
  ): Promise<ProviderView> {
    this.refuseEnvironment(name);
    return this.change(async (manager) => {
      const row = await this.findExpected(manager, name, expected);
      if (Object.keys(settings).length === 0) return this.view(row);
      const { url = row.url, auth = row.auth, enabled = row.enabled, secret } = settings;
      if (row.sealed_secret !== null && secret === undefined && originOf(url) !== originOf(row.url)) {
        throw Fault.of(
          'invalid',
          'secret',
          'must be given again when the url moves to another host, so that the stored one is never sent elsewhere',
        );
      }
      const isDefault = settings.default ?? row.is_default;
      if (isDefault) await manager.query(NO_LONGER_DEFAULT, [name]);
      const sealed = typeof secret === 'string' ? this.secrets.seal(row.id, secret) : secret;
      const kept = sealed === undefined ? row.sealed_secret : sealed;
      await manager.query(UPDATE, [row.id, url, auth, kept, isDefault, enabled]);
      return this.view(await this.find(manager, FIND, name));
    });
  }

  /** @throws Fault not_found; conflict when it was changed since `expected`, or is the environment's */
  async remove(name: string, expected: Expected = null): Promise<void> {
    this.refuseEnvironment(name);
    await this.change(async (manager) => {
      const { id } = await this.findExpected(manager, name, expected);
      await manager.query(DELETE, [id]);
    });
  }

  /**
   * The provider ready to be called, also a disabled one.
   *
   * @throws Fault not_found, conflict when its secret cannot be opened
   */
  async open(name: string): Promise<Provider> {
    if (name === DEFAULT_PROVIDER && this.providers.environment !== null) return this.providers.environment;
    const row = await this.find(this.dataSource.manager, FIND, name);
    let secret: string | null;
    try {
      secret = row.sealed_secret && this.secrets.open(row.id, row.sealed_secret);
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error;
      throw Fault.of('conflict', 'secret', `cannot be opened: ${error.message}`);
    }
    return makeProvider(row.name, row.url, row.auth, secret);
  }

  /**
   * Seals anew what the previous master key sealed, one row at a time: it can be stopped and run again at will. No
   * setting changes, so versions stay.
   *
   * @throws Fault invalid without a master key
   */
  async reseal(): Promise<Resealed> {
    const done: Resealed = { resealed: [], current: [], unreadable: [] };
    for (const { name } of await this.dataSource.query<{ name: string }[]>(LIST_SEALED)) {
      const outcome = await this.change(async (manager): Promise<keyof Resealed | null> => {
        const [row] = await manager.query<ProviderRow[]>(FIND_TO_CHANGE, [name]);
        if (!row?.sealed_secret) return null;
        if (this.stateOf(row) === 'unreadable') return 'unreadable';
        if (this.secrets.isCurrent(row.sealed_secret)) return 'current';
        const secret = this.secrets.open(row.id, row.sealed_secret);
        await manager.query(RESEAL, [row.id, this.secrets.seal(row.id, secret)]);
        return 'resealed';
      });
      if (outcome !== null) done[outcome].push(name);
    }
    return done;
  }

  /**
   * Runs one change in a transaction of its own; whatever must be written with it, such as who made it, belongs into
   * `work`.
   */
  private async change<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    const result = await this.dataSource.transaction(async (manager) => {
      await manager.query(TAKE_TURNS);
      return work(manager);
    });
    // Done all the same when this fails: the change is in force as soon as it is followed, as on any replica.
    await this.providers.refresh().catch(() => {});
    return result;
  }

  private async findExpected(manager: EntityManager, name: string, expected: Expected): Promise<ProviderRow> {
    const row = await this.find(manager, FIND_TO_CHANGE, name);
    if (expected === null || expected.includes(revisionOf(row))) return row;
    throw Fault.of(
      'conflict',
      'version',
      'somebody changed this provider meanwhile; read it again, then repeat yours',
    );
  }

  private async find(manager: EntityManager, sql: string, name: string): Promise<ProviderRow> {
    // What is no name is no row's; Postgres would not even take some of it as text.
    const [row] = PROVIDER_NAME.test(name) ? await manager.query<ProviderRow[]>(sql, [name]) : [];
    if (row !== undefined) return row;
    throw Fault.of('not_found', 'name', 'no provider has this name; list the providers to find it');
  }

  private refuseEnvironment(name: string): void {
    if (name !== DEFAULT_PROVIDER || this.env.providerUrl === undefined) return;
    throw Fault.of('conflict', 'name', 'this one is set by PROVIDER_URL; change it there and start again');
  }

  private view(row: ProviderRow): ProviderView {
    return providerView(row, this.stateOf(row));
  }

  private stateOf({ id, sealed_secret: sealed }: ProviderRow): SecretState {
    if (sealed === null) return 'none';
    try {
      this.secrets.open(id, sealed);
    } catch (error) {
      // Where there is no master key at all (a command) nothing can be said of it.
      if (error instanceof SecretBoxError) return 'unreadable';
    }
    return 'sealed';
  }
}

/** A row that somebody wrote by hand may hold anything. */
function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}

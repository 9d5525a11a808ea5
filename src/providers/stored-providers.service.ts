import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { Access, Scope } from '../admin/access/access.js';
import { Turns } from '../admin/access/turns.js';
import type { Actor } from '../platform/actor.js';
import { audited, type Subject } from '../audit/audited.js';
import { mustChangeLess } from '../audit/recent-changes.js';
import { recordChange } from '../audit/record-change.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import type { Expected } from '../database/revision.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import { isKeyless } from './credentials/auth-kinds.js';
import { needsSecretAgain, rejectOtherSettings } from './credentials/auth-settings.js';
import { CredentialSources, storedCredential } from './credentials/credential-sources.service.js';
import { mustKeepOneCredentialHost } from './credential-hosts.js';
import { changedSettings, checkedCredential, checkFits } from './credentials/given-credential.js';
import { catalogOf } from './provider-catalog.js';
import { DEFAULT_PROVIDER } from './provider-name.js';
import { findProvider, LOCK_CHANGES } from './provider-rows.js';
import { ProviderSecrets } from './provider-secrets.service.js';
import { besideEnvironment, environmentView, type ProviderRow, SELECT_PROVIDERS } from './provider-view.js';
import { StoredProvider } from './provider.entity.js';
import { makeProvider, type Provider } from './provider.js';
import type { NewProvider, ProviderChange, ProviderView } from './providers.schema.js';
import { ProvidersService } from './providers.service.js';
import { mustBeNoDefaultOfTeam, mustSuitTeams, teamIdOf } from './team-providers.js';

const LIST = `${SELECT_PROVIDERS} WHERE $1::uuid[] IS NULL OR team_id = ANY ($1) ORDER BY name`;
const FIND_OTHER_DEFAULT = `${SELECT_PROVIDERS} WHERE is_default AND name <> $1`;

const FIND_ROUTES = `
  SELECT name FROM route WHERE targets @> jsonb_build_array(jsonb_build_object('provider', $1::text)) ORDER BY name`;

/** Changes an hour of one lead, who could flood the audit log otherwise. */
const MAX_CHANGES = 200;

/** Adds, shows and changes providers. */
@Injectable()
export class StoredProvidersService {
  /** Of leads: while a change waits for a lock it holds a connection, of which administrators need some too. */
  private readonly turns = new Turns();
  private readonly subject: Subject<ProviderRow> = {
    type: 'provider',
    lock: async (manager, name) => {
      await manager.query(LOCK_CHANGES);
      return name;
    },
    find: (manager, name) => findProvider(manager, name),
    shown: (row) => this.secrets.viewOf(row),
  };

  constructor(
    private readonly manager: EntityManager,
    private readonly secrets: ProviderSecrets,
    private readonly providers: ProvidersService,
    private readonly sources: CredentialSources,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): StoredProvidersService {
    const { secrets, providers, sources, env } = this;
    return new StoredProvidersService(manager, secrets, providers, sources, env);
  }

  /**
   * @throws ServiceError conflict if the name is taken or reserved, or if a default of all teams would be for one; invalid for a
   *   secret with the auth `client`; not_found for an unknown team
   */
  async create({ name, ...settings }: NewProvider, by: Actor): Promise<ProviderView> {
    if (name === DEFAULT_PROVIDER) {
      throw ServiceError.of(
        'conflict',
        'name',
        'is reserved for the provider of PROVIDER_URL; choose another name',
      );
    }
    const givenSettings = settings.auth_settings ?? {};
    checkFits({ auth: settings.auth, auth_settings: givenSettings }, settings.secret !== null);
    const id = uuidv7();
    try {
      const creating = transacted(this.manager, async (manager) => {
        await manager.query(LOCK_CHANGES);
        const { url, auth, enabled, catalog = catalogOf(url), on_disconnect: onDisconnect, team } = settings;
        const teamId = team === null ? null : await teamIdOf(manager, team);
        rejectOtherSettings(auth, givenSettings);
        const { secret, authSettings } = checkedCredential(auth, url, givenSettings, settings.secret);
        if (settings.default) await this.endOtherDefault(manager, name, by);
        await manager.insert(StoredProvider, {
          id,
          name,
          url,
          auth,
          authSettings,
          sealedSecret: secret === null ? null : this.secrets.seal(id, secret),
          isDefault: settings.default,
          enabled,
          catalog,
          onDisconnect,
          teamId,
        });
        await mustSuitTeams(manager, 'team');
        const row = await findProvider(manager, name);
        const after = this.secrets.viewOf(row);
        await recordChange(manager, by, { action: 'created', type: 'provider', before: null, after });
        return row;
      });
      return await this.inForce(creating);
    } catch (error) {
      if (!isUniqueViolation(error, 'provider_name_key')) throw error;
      throw ServiceError.of(
        'conflict',
        'name',
        'a provider or a route with this name already exists; choose another name, or change that one',
      );
    }
  }

  /** Lists all providers: the one of the environment first, then by name. @param scope only those of these teams */
  async list(scope: Scope = null): Promise<ProviderView[]> {
    const rows = await this.manager.query<ProviderRow[]>(LIST, [scope]);
    const own = scope === null ? environmentView(this.env) : null;
    const stored = rows.map((row) => besideEnvironment(this.env, this.secrets.viewOf(row)));
    return [...(own === null ? [] : [own]), ...stored];
  }

  /** @throws ServiceError not_found, also outside the scope */
  async get(name: string, scope: Scope = null): Promise<ProviderView> {
    const own = name === DEFAULT_PROVIDER && scope === null ? environmentView(this.env) : null;
    if (own !== null) return own;
    const stored = this.secrets.viewOf(await findProvider(this.manager, name, scope));
    return besideEnvironment(this.env, stored);
  }

  /**
   * Changes a provider. If nothing differs, the version stays and nothing is recorded.
   *
   * @param as a lead, who may change the providers of their teams only
   * @param check of what it would become, before the change
   * @throws ServiceError not_found, also for a team; conflict if it was changed since `expected`, is the environment's, or does
   *   not suit the teams; invalid for a secret with the auth `client`, and if the URL moves to another origin without the secret: otherwise anybody who may set a URL could receive the secret;
   *   conflict if a route would send the caller's own credential to two hosts
   */
  async update(
    name: string,
    settings: ProviderChange,
    by: Actor,
    expected: Expected = null,
    as: Access | null = null,
    check?: (manager: EntityManager, before: ProviderView, next: ProviderView) => Promise<void>,
  ): Promise<ProviderView> {
    this.rejectEnvironment(name);
    const request = { id: name, action: 'changed', by, expected };
    const subject = as === null ? this.subject : { ...this.subject, find: findIn(as.scope) };
    const changing = audited(this.manager, subject, request, async (manager, row) => {
      const before = this.secrets.viewOf(row);
      const { secret: given, auth_settings: changes = {}, team, ...others } = settings;
      const teamId = team === undefined ? row.team_id : team === null ? null : await teamIdOf(manager, team);
      const isMoved = teamId !== row.team_id;
      const next = { ...before, ...others };
      rejectOtherSettings(next.auth, changes);
      const stored = next.auth === before.auth ? before.auth_settings : null;
      const all = changedSettings(stored, changes);
      const { secret, authSettings } = checkedCredential(next.auth, next.url, all, given, changes);
      const needsSecret = authSettings !== null && !isKeyless(next.auth, authSettings);
      if (needsSecret && given === undefined && row.sealed_secret === null)
        throw ServiceError.of('invalid', 'secret', `is needed for ${next.auth}`);
      next.auth_settings = authSettings;
      checkFits(next, secret === undefined ? row.sealed_secret !== null : secret !== null);
      if (others.catalog === undefined && before.catalog === catalogOf(before.url))
        next.catalog = catalogOf(next.url);
      if (row.sealed_secret !== null && secret === undefined && needsSecretAgain(before, next)) {
        throw ServiceError.of(
          'invalid',
          'secret',
          'must be sent again with another way of authentication, access key, client or token URL, because the stored one belongs to the former',
        );
      }
      if (row.sealed_secret !== null && secret === undefined && originOf(next.url) !== originOf(row.url)) {
        throw ServiceError.of(
          'invalid',
          'secret',
          'must be sent again with a URL on another host, so that the stored one is never sent elsewhere',
        );
      }
      const keepsSecret = secret === undefined || secret === this.readable(row);
      if (keepsSecret && !isMoved && isSame(before, next)) return null;
      await check?.(manager, before, next);
      if (next.default) await this.endOtherDefault(manager, name, by);
      await manager.update(StoredProvider, row.id, {
        url: next.url,
        auth: next.auth,
        authSettings,
        ...(!keepsSecret && { sealedSecret: secret ? this.secrets.seal(row.id, secret) : null }),
        isDefault: next.default,
        enabled: next.enabled,
        catalog: next.catalog,
        onDisconnect: next.on_disconnect,
        teamId,
      });
      if (isMoved || next.default) await mustSuitTeams(manager, isMoved ? 'team' : 'default');
      const isElsewhere = next.auth !== before.auth || originOf(next.url) !== originOf(row.url);
      if (next.auth === 'client' && isElsewhere) await mustKeepOneCredentialHost(manager, name, this.env);
      return keepsSecret ? {} : { secret: 'changed' };
    });
    return this.inForce(changing);
  }

  /**
   * What the lead of a team (role `lead`) may change of a provider of the team: its secret. It goes where it went before.
   *
   * @throws ServiceError as update(); not_found for a provider of somebody else; forbidden for anything but a new secret;
   *   conflict for too many changes
   */
  async replaceSecret(
    name: string,
    { secret, ...others }: ProviderChange,
    by: Access,
    expected: Expected = null,
  ): Promise<ProviderView> {
    const other = Object.entries(others).find(([, value]) => value !== undefined);
    if (other !== undefined)
      throw ServiceError.of(
        'forbidden',
        other[0],
        'only an administrator may change it; the secret is yours',
      );
    if (secret === null)
      throw ServiceError.of('forbidden', 'secret', 'only an administrator may remove it; send a new one');
    const check = async (manager: EntityManager, before: ProviderView, next: ProviderView) => {
      // A key file of Google names the endpoint that the gateway sends its token requests to.
      if (next.auth_settings?.token_url !== before.auth_settings?.token_url)
        throw ServiceError.of('forbidden', 'secret', 'only an administrator may change its token_uri');
      await mustChangeLess(manager, by.actor.name, MAX_CHANGES);
    };
    return this.turns.take(by.userId, () => this.update(name, { secret }, by.actor, expected, by, check));
  }

  /**
   * @throws ServiceError not_found; conflict if it was changed since `expected`, is the environment's, a route's target, or the
   *   default of a team
   */
  async remove(name: string, by: Actor, expected: Expected = null): Promise<void> {
    this.rejectEnvironment(name);
    const request = { id: name, action: 'removed', by, expected, removes: true };
    const removing = audited(this.manager, this.subject, request, async (manager, { id }) => {
      await mustBeNoTarget(manager, name);
      await mustBeNoDefaultOfTeam(manager, name);
      await manager.delete(StoredProvider, id);
      return {};
    });
    await this.inForce(removing);
  }

  /**
   * Returns a provider ready for calls, also a disabled one.
   *
   * @throws ServiceError not_found, conflict if its secret cannot be decrypted, or its URL in the table is invalid
   */
  async open(name: string): Promise<Provider> {
    if (name === DEFAULT_PROVIDER && this.providers.environment !== null) return this.providers.environment;
    const row = await findProvider(this.manager, name);
    if (originOf(row.url) === null)
      throw ServiceError.of('conflict', 'url', 'the stored value is not a valid URL; update it');
    const secret = row.sealed_secret && this.secrets.mustOpen(row.id, row.sealed_secret, 'secret');
    // A source of its own: a test must not be passed by a token that calls have obtained.
    const source = this.sources.make(storedCredential(row, row.url, secret));
    return makeProvider(row.name, row.url, row.auth, secret, source);
  }

  private async inForce(changing: Promise<ProviderRow>): Promise<ProviderView> {
    const row = await changing;
    // If this fails, the change still takes effect by its notification, as on any replica.
    await this.providers.refresh().catch(() => {});
    return besideEnvironment(this.env, this.secrets.viewOf(row));
  }

  /** Ends the default of another provider in the same transaction. */
  private async endOtherDefault(manager: EntityManager, name: string, by: Actor): Promise<void> {
    const [row] = await manager.query<ProviderRow[]>(FIND_OTHER_DEFAULT, [name]);
    if (row === undefined) return;
    await manager.update(StoredProvider, row.id, { isDefault: false });
    const before = this.secrets.viewOf(row);
    const after = { ...before, default: false };
    await recordChange(manager, by, { action: 'changed', type: 'provider', before, after });
  }

  /** The stored secret, null if there is none; undefined if it cannot be decrypted. */
  private readable({ id, sealed_secret: sealed }: ProviderRow): string | null | undefined {
    return sealed && this.secrets.tryOpen(id, sealed);
  }

  private rejectEnvironment(name: string): void {
    if (name !== DEFAULT_PROVIDER || this.env.providerUrl === undefined) return;
    throw ServiceError.of(
      'conflict',
      'name',
      'this provider is set by PROVIDER_URL; change it there and restart the gateway',
    );
  }
}

function findIn(scope: Scope) {
  return (manager: EntityManager, name: string) => findProvider(manager, name, scope);
}

async function mustBeNoTarget(manager: EntityManager, name: string): Promise<void> {
  const routes = await manager.query<{ name: string }[]>(FIND_ROUTES, [name]);
  if (routes.length === 0) return;
  const names = routes.map((route) => route.name).join(', ');
  throw ServiceError.of(
    'conflict',
    'name',
    `routes send calls to this provider; change them first: ${names}`,
  );
}

function isSame(one: ProviderView, other: ProviderView): boolean {
  return (['url', 'auth', 'auth_settings', 'default', 'enabled', 'catalog', 'on_disconnect'] as const).every(
    (name) => isDeepStrictEqual(one[name], other[name]),
  );
}

/** A row that was written by hand may contain anything, so the URL may be invalid. */
function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}

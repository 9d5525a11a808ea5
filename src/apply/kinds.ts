import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';
import { GroupsService } from '../groups/groups.service.js';
import { TrustsService } from '../identity/trusts/trusts.service.js';
import { fullName } from '../keys/key-view.js';
import { KeysService } from '../keys/keys.service.js';
import { INSTALLATION } from '../limit-rules/limit-rule.entity.js';
import { LimitsService } from '../limits/limits.service.js';
import type { Actor } from '../platform/actor.js';
import { PriceResolver } from '../pricing/price-resolver.js';
import { PoliciesService } from '../policies-by-url/policies.service.js';
import { PricesService } from '../pricing/prices.service.js';
import { settingNames } from '../providers/credentials/auth-settings.js';
import { onDisconnectOf } from '../providers/on-disconnect.js';
import { catalogOf } from '../providers/provider-catalog.js';
import { ProvidersService } from '../providers/providers.service.js';
import { StoredProvidersService } from '../providers/stored-providers.service.js';
import { RoutesService } from '../routes/routes.service.js';
import { StoredRoutesService } from '../routes/stored-routes.service.js';
import { SinksService } from '../sinks/sinks.service.js';
import { TeamsService } from '../teams/teams.service.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import { NO_AMOUNTS, NO_LIMITS, NO_TEAM_RULES } from './absent-members.js';
import type { ApplyDocument, Item, Member, NewSecret } from './apply.schema.js';
import { changed, given } from './as-stored.js';

/** The ID of an object, and its secret if it is new and has one. */
interface Put {
  id: string;
  secret?: NewSecret;
}

/** One list of the document. Its services validate, store and record each change. */
export interface Kind<M extends Member = Member> {
  readonly member: M;
  /** Changes one object to match the document. */
  put(manager: EntityManager, item: Item<M>, by: Actor): Promise<Put>;
  /** Ends what the document does not name. @param named IDs */
  prune(manager: EntityManager, named: ReadonlySet<string>, by: Actor): Promise<void>;
}

/** A page that has everything. */
const ALL = { limit: 1_000_000, cursor: undefined };

async function unlessMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof ServiceError && error.kind === 'not_found') return null;
    throw error;
  }
}

/** The lists, in the order in which they are applied: what others refer to comes first. */
@Injectable()
export class Kinds {
  constructor(
    private readonly limits: LimitsService,
    private readonly groups: GroupsService,
    private readonly teams: TeamsService,
    private readonly storedProviders: StoredProvidersService,
    private readonly providers: ProvidersService,
    private readonly storedRoutes: StoredRoutesService,
    private readonly routes: RoutesService,
    private readonly prices: PricesService,
    private readonly resolver: PriceResolver,
    private readonly keys: KeysService,
    private readonly trusts: TrustsService,
    private readonly webhooks: WebhooksService,
    private readonly policies: PoliciesService,
    private readonly sinks: SinksService,
  ) {}

  /** A list more: one method here and one member of the document. */
  of(document: ApplyDocument): readonly Kind[] {
    return [
      this.providerKind(document),
      this.routeKind(),
      this.installationKind(),
      this.groupKind(),
      this.teamKind(),
      this.priceKind(),
      this.keyKind(),
      this.trustKind(),
      this.webhookKind(),
      this.policyKind(),
      this.sinkKind(),
    ];
  }

  /** Brings what was committed into force in this process. Replicas get it by notification, and this one if this fails. */
  async takeEffect(): Promise<void> {
    this.resolver.forget();
    await Promise.allSettled([
      this.providers.refresh(),
      this.routes.refresh(),
      this.trusts.refresh(),
      this.policies.refresh(),
    ]);
  }

  private installationKind(): Kind<'installation'> {
    return {
      member: 'installation',
      put: async (manager, limits, by) => {
        await this.limits.changeInstallation({ ...NO_LIMITS, ...limits }, by, { manager });
        return { id: INSTALLATION };
      },
      prune: () => Promise.resolve(),
    };
  }

  private groupKind(): Kind<'groups'> {
    const service = (manager: EntityManager) => this.groups.in(manager);
    return {
      member: 'groups',
      put: async (manager, item, by) => {
        const { name, ...change } = item;
        const present = await unlessMissing(service(manager).get(name));
        return present === null
          ? service(manager).create({ ...item, teams: [] }, by)
          : service(manager).update(present.id, { ...NO_LIMITS, ...change }, by);
      },
      prune: async (manager, named, by) => {
        const { data } = await service(manager).list(ALL);
        for (const { id } of data) if (!named.has(id)) await service(manager).remove(id, by);
      },
    };
  }

  private teamKind(): Kind<'teams'> {
    const service = (manager: EntityManager) => this.teams.in(manager);
    return {
      member: 'teams',
      put: async (manager, { disabled, ...item }, by) => {
        const teams = service(manager);
        const { id } = (await unlessMissing(teams.get(item.name))) ?? (await teams.create(item, by));
        const isSet = disabled !== undefined && { disabled };
        await teams.update(id, { ...NO_LIMITS, ...NO_TEAM_RULES, ...item, ...isSet }, by);
        return { id };
      },
      prune: async (manager, named, by) => {
        const { data } = await service(manager).list(ALL);
        for (const { id } of data)
          if (!named.has(id)) await service(manager).update(id, { disabled: true, group: null }, by);
      },
    };
  }

  private providerKind({ teams = [] }: ApplyDocument): Kind<'providers'> {
    const service = (manager: EntityManager) => this.storedProviders.in(manager);
    return {
      member: 'providers',
      put: async (manager, item, by) => {
        const { enabled, on_disconnect, secret, ...rest } = item;
        const { name, auth_settings: settings, ...change } = rest;
        // A team names providers, and a provider its team: a new one begins with its name.
        const isListed = item.team !== null && teams.some((team) => team.name === item.team);
        if (isListed && (await unlessMissing(this.teams.in(manager).get(item.team!))) === null)
          await this.teams.in(manager).create({ name: item.team! }, by);
        const present = await unlessMissing(service(manager).get(name));
        if (present === null) {
          const wanted = {
            enabled: enabled ?? true,
            on_disconnect: on_disconnect ?? onDisconnectOf(item.url),
          };
          const created = { ...rest, secret: given(secret, 'secret'), ...wanted };
          const { id } = await service(manager).create(created, by);
          return { id: id! };
        }
        if (present.secret_state === 'none') given(secret, 'secret');
        const none = Object.fromEntries(settingNames(item.auth).map((setting) => [setting, null]));
        const catalog = item.catalog === undefined ? catalogOf(item.url) : item.catalog;
        const isSet = {
          ...(enabled !== undefined && { enabled }),
          ...(on_disconnect !== undefined && { on_disconnect }),
        };
        const auth_settings = { ...none, ...settings };
        const wanted = { ...change, secret: changed(secret), auth_settings, catalog, ...isSet };
        const { id } = await service(manager).update(name, wanted, by);
        return { id: id! };
      },
      prune: async (manager, named, by) => {
        for (const { id, name } of await service(manager).list())
          if (id !== null && !named.has(id)) await service(manager).remove(name, by);
      },
    };
  }

  private routeKind(): Kind<'routes'> {
    const service = (manager: EntityManager) => this.storedRoutes.in(manager);
    return {
      member: 'routes',
      put: async (manager, item, by) => {
        const { name, ...change } = item;
        const present = await unlessMissing(service(manager).get(name));
        return present === null
          ? service(manager).create(item, by)
          : service(manager).update(name, change, by);
      },
      prune: async (manager, named, by) => {
        for (const { id, name } of await service(manager).list())
          if (!named.has(id)) await service(manager).remove(name, by);
      },
    };
  }

  private priceKind(): Kind<'prices'> {
    const service = (manager: EntityManager) => this.prices.in(manager);
    const custom = { ...ALL, source: 'custom' } as const;
    return {
      member: 'prices',
      put: async (manager, item, by) => {
        const { catalog, model, effective_from: from, ...amounts } = item;
        const { data } = await service(manager).list({ ...custom, catalog, model });
        const present = data.find((price) => Date.parse(price.effective_from) === from.getTime());
        return present === undefined
          ? service(manager).create(item, by)
          : service(manager).update(present.id, { ...NO_AMOUNTS, ...amounts }, by);
      },
      prune: async (manager, named, by) => {
        const { data } = await service(manager).list(custom);
        for (const { id } of data) if (!named.has(id)) await service(manager).remove(id, by);
      },
    };
  }

  private keyKind(): Kind<'keys'> {
    const service = (manager: EntityManager) => this.keys.in(manager);
    return {
      member: 'keys',
      put: async (
        manager,
        { team, name, expires_at: expiresAt, disabled, secret: hasSecret, ...item },
        by,
      ) => {
        const grant = { ...NO_LIMITS, ...item, expiresAt };
        const { data } = await service(manager).list({ ...ALL, team, name });
        const present = data[0];
        if (expiresAt !== null && expiresAt <= new Date() && present?.expires_at !== expiresAt.toISOString())
          throw ServiceError.of('invalid', 'expires_at', 'must be in the future, if it is new');
        const isSet = disabled !== undefined && { disabled };
        if (present !== undefined) {
          if (present.origin === 'sign_in')
            throw ServiceError.of(
              'conflict',
              'name',
              'is that of a key for sign-ins, whose settings are in sign_in of its team; choose another name',
            );
          if (present.revoked_at !== null) {
            const remedy = 'remove it from the document, or choose another name';
            throw ServiceError.of('conflict', 'name', `this key is revoked permanently; ${remedy}`);
          }
          // The owner of a member's own key is that member: a document without one says nothing else.
          const isOwn = present.self_service && item.owner === null && { owner: undefined };
          return service(manager).update(present.id, { ...grant, ...isSet, ...isOwn }, by);
        }
        const { key, secret } = await service(manager).create(
          { ...grant, secret: hasSecret, team, name },
          by,
        );
        if (disabled) await service(manager).update(key.id, { disabled }, by);
        const shown = secret !== null && ({ type: 'key', id: key.id, name: fullName(key), secret } as const);
        return { id: key.id, ...(shown && { secret: shown }) };
      },
      prune: async (manager, named, by) => {
        const { data } = await service(manager).list(ALL);
        for (const { id, self_service: isOwn, origin } of data)
          if (!isOwn && origin === 'manual' && !named.has(id)) await service(manager).revoke(id, by);
      },
    };
  }

  private trustKind(): Kind<'trusts'> {
    const service = (manager: EntityManager) => this.trusts.in(manager);
    return {
      member: 'trusts',
      put: async (manager, { enabled, ...item }, by) => {
        const present = await unlessMissing(service(manager).get(item.name));
        if (present === null) return service(manager).create({ ...item, enabled: enabled ?? true }, by);
        const { preset, ...change } = service(manager).complete(item);
        if (present.preset !== preset) {
          const remedy = 'choose another name, or remove this trust first';
          throw ServiceError.of(
            'conflict',
            'preset',
            `the preset of a trust cannot change, and this one is ${present.preset}; ${remedy}`,
          );
        }
        const isSet = enabled !== undefined && { enabled };
        return service(manager).update(present.id, { ...change, ...isSet }, by);
      },
      prune: async (manager, named, by) => {
        const { data } = await service(manager).list(ALL);
        for (const { id } of data) if (!named.has(id)) await service(manager).remove(id, by);
      },
    };
  }

  private webhookKind(): Kind<'webhooks'> {
    const service = (manager: EntityManager) => this.webhooks.in(manager);
    return {
      member: 'webhooks',
      put: async (manager, item, by) => {
        const { url, format, events } = item;
        if (typeof url === 'object') {
          const present = await unlessMissing(service(manager).get(url.stored));
          if (present === null)
            throw ServiceError.of(
              'invalid',
              'url',
              'no webhook with this ID is stored here, so give the URL itself: in a file as text, { env: NAME } or { file: PATH }',
            );
          if (present.format !== format)
            throw ServiceError.of('conflict', 'format', `cannot change, and is ${present.format}`);
          return service(manager).update(url.stored, { events }, by);
        }
        const id = await service(manager).idOf(url, format);
        if (id !== null) return service(manager).update(id, { events }, by);
        const { id: created, secret } = await service(manager).create({ url, format, events }, by);
        return {
          id: created,
          ...(secret !== null && { secret: { type: 'webhook', id: created, name: url, secret } }),
        };
      },
      prune: async (manager, named, by) => {
        for (const { id } of await service(manager).list())
          if (!named.has(id)) await service(manager).remove(id, by);
      },
    };
  }

  private policyKind(): Kind<'policies'> {
    const service = (manager: EntityManager) => this.policies.in(manager);
    return {
      member: 'policies',
      put: async (manager, item, by) => {
        const { url, secret, enabled, ...settings } = item;
        const present = (await service(manager).list()).find(({ name }) => name === settings.name);
        if (present === undefined) {
          const target = { url: given(url, 'url'), secret: given(secret, 'secret') };
          return service(manager).create({ ...settings, ...target, enabled: enabled ?? true }, by);
        }
        const change = { ...settings, url: changed(url), secret: changed(secret) };
        const isSet = enabled !== undefined && { enabled };
        return service(manager).update(present.id, { ...change, ...isSet }, by);
      },
      prune: async (manager, named, by) => {
        for (const { id } of await service(manager).list())
          if (!named.has(id)) await service(manager).remove(id, by);
      },
    };
  }

  private sinkKind(): Kind<'sinks'> {
    const service = (manager: EntityManager) => this.sinks.in(manager);
    return {
      member: 'sinks',
      put: async (manager, item, by) => {
        const { enabled, name, kind, url, secret, target, from } = item;
        const present = (await service(manager).list()).find((sink) => sink.name === name);
        const isSet = enabled !== undefined && { enabled };
        if (present === undefined) {
          const access = { url: given(url, 'url'), secret: given(secret, 'secret') };
          const { id } = await service(manager).create({ name, kind, target, from, ...access }, by);
          return enabled === false ? service(manager).update(id, { enabled }, by) : { id };
        }
        if (present.kind !== kind) {
          const remedy = 'choose another name, or remove this sink first';
          throw ServiceError.of(
            'conflict',
            'kind',
            `the kind of a sink cannot change, and this one is ${present.kind}; ${remedy}`,
          );
        }
        const change = { url: changed(url), secret: changed(secret), target };
        return service(manager).update(present.id, { ...change, ...isSet }, by);
      },
      prune: async (manager, named, by) => {
        for (const { id } of await service(manager).list())
          if (!named.has(id)) await service(manager).remove(id, by);
      },
    };
  }
}

import { createHmac } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { cliCommand } from '../platform/cli-command.js';
import { InjectSettings } from '../config/config.module.js';
import { required, type Settings } from '../config/settings.js';
import { ChangeFeed } from '../database/change-feed.js';
import { DatabaseService } from '../database/database.service.js';
import { GatewayError } from '../errors/gateway-error.js';
import {
  type Directory,
  type DirectoryRow,
  directoryOf,
  type Entry,
  READ_PROVIDERS,
} from './provider-directory.js';
import { catalogOf } from './provider-catalog.js';
import { DEFAULT_PROVIDER } from './provider-name.js';
import { CredentialSources } from './credentials/credential-sources.service.js';
import { ProviderSecrets } from './provider-secrets.service.js';
import { makeProvider, type Provider } from './provider.js';
import { calledName, isOpenTo, mustBeListed, otherTeam, type ProviderAccess } from './provider-access.js';

type Read = () => Promise<DirectoryRow[]>;

/** Resolves the provider of each call. It holds all providers in memory, because there are few. */
@Injectable()
export class ProvidersService {
  private readonly logger = new Logger('Providers');
  /** The environment's. */
  private readonly own: Provider | null;
  private readonly ownCatalog: string | null;
  /** The last providers that were read; null until Postgres was reached for the first time. */
  private directory: Directory | null = null;

  constructor(
    @InjectSettings() env: Settings,
    private readonly dataSource: DataSource,
    private readonly secrets: ProviderSecrets,
    private readonly sources: CredentialSources,
    feed: ChangeFeed,
    database: DatabaseService,
  ) {
    this.own = env.providerUrl
      ? makeProvider(
          DEFAULT_PROVIDER,
          env.providerUrl,
          env.providerAuth,
          env.providerKey ?? null,
          null,
          // Cannot be compared with guessed secrets by whoever reads the database.
          createHmac('sha256', required(env, 'masterKey'))
            .update(env.providerKey ?? '')
            .digest('base64url'),
        )
      : null;
    this.ownCatalog = env.providerUrl === undefined ? null : catalogOf(env.providerUrl);
    database.whenReady(() => this.refresh());
    feed.subscribe('providers', {
      onChange: null,
      compare: (client) => this.load(async () => (await client.query<DirectoryRow>(READ_PROVIDERS)).rows),
    });
  }

  /** The provider that PROVIDER_URL describes, or null. */
  get environment(): Provider | null {
    return this.own;
  }

  /** The price list of a provider; null for one without, and for one that is not known. */
  catalogOf(name: string): string | null {
    if (name === DEFAULT_PROVIDER) return this.ownCatalog;
    return this.directory?.byName.get(name)?.catalog ?? null;
  }

  /** Whether any provider has a price list. */
  get hasCatalog(): boolean {
    if (this.ownCatalog !== null) return true;
    for (const { catalog } of this.directory?.byName.values() ?? []) if (catalog !== null) return true;
    return false;
  }

  /** True if it is known that there is no default provider. */
  get lacksDefault(): boolean {
    return this.own === null && this.directory !== null && this.directory.fallback?.enabled !== true;
  }

  /** Reads the providers now, so that a change made by this process takes effect before its response. */
  async refresh(): Promise<void> {
    await this.load(() => this.dataSource.query<DirectoryRow[]>(READ_PROVIDERS));
  }

  /**
   * The provider of a call: the one in its path; on `/v1` the one its key is limited to, else the default of its team, else
   * that of all teams.
   *
   * @param named provider of `/p/<provider>/…`, or null
   * @throws GatewayError provider_not_allowed (also for one of another team), provider_not_found (a disabled one too), no_provider_configured (also when a
   *   secret cannot be opened), database_unavailable while no stored provider could ever be read
   */
  resolve(named: string | null, access: ProviderAccess): Provider {
    const name = calledName(named, access);
    if (name === null) {
      const provider = this.default();
      mustBeListed(provider.name, access);
      if (!isOpenTo(provider, access.teamId)) throw otherTeam('provider');
      return provider;
    }
    mustBeListed(name, access);
    if (name === DEFAULT_PROVIDER) {
      if (this.own !== null) return this.own;
      throw new GatewayError(named === null ? 'no_provider_configured' : 'provider_not_found');
    }
    const entry = this.stored().byName.get(name);
    if (entry === undefined) throw new GatewayError('provider_not_found');
    if (!isOpenTo(entry, access.teamId)) throw otherTeam('provider');
    if (!entry.enabled)
      throw new GatewayError('provider_not_found', { message: 'This provider is disabled.' });
    return usable(entry);
  }

  /** A provider by its name; null if there is none that can be used. */
  find(name: string): Provider | null {
    if (name === DEFAULT_PROVIDER) return this.own;
    const entry = this.directory?.byName.get(name);
    return entry?.enabled ? entry.provider : null;
  }

  /** Whether a provider, also a disabled one, is for another team than this one. */
  isOfOtherTeam(name: string, teamId: string): boolean {
    const entry = this.directory?.byName.get(name);
    return entry !== undefined && !isOpenTo(entry, teamId);
  }

  /** Where a provider, also a disabled one, receives the caller's own credential; null if it gets none. */
  credentialOrigin(name: string): string | null {
    const provider = name === DEFAULT_PROVIDER ? this.own : this.directory?.byName.get(name)?.provider;
    return provider?.forwardsCredentials ? provider.origin : null;
  }

  /** The default of the environment overrides a stored one, so that a row cannot change what a deployment has set. */
  private default(): Provider {
    if (this.own !== null) return this.own;
    const { fallback } = this.stored();
    if (fallback?.enabled) return usable(fallback);
    throw new GatewayError('no_provider_configured', {
      message:
        `There is no default provider. Add one with "${cliCommand('providers add <name> --default')}", ` +
        'set PROVIDER_URL, or call /p/<provider>/...',
    });
  }

  private stored(): Directory {
    if (this.directory !== null) return this.directory;
    throw new GatewayError('database_unavailable', {
      message: 'The providers cannot be read because the database is unavailable. Try again.',
    });
  }

  /**
   * Two reads may run at a time, on different connections: an older result never replaces a newer one. A lower change
   * count without a concurrent read means that the database was restored, so that result is used.
   */
  private async load(read: Read): Promise<void> {
    for (;;) {
      const before = this.directory;
      const rows = await read();
      const sources = this.sources.read();
      const found = directoryOf(rows, (id, sealed) => this.secrets.open(id, sealed), sources);
      if (this.directory !== null && found.counted < this.directory.counted && this.directory !== before)
        continue;
      sources.end();
      this.reportErrors(found);
      this.directory = found;
      return;
    }
  }

  /** Reported once per provider, not at each read. */
  private reportErrors({ byName }: Directory): void {
    for (const { name, problem } of byName.values()) {
      if (problem === null || problem === this.directory?.byName.get(name)?.problem) continue;
      this.logger.error(
        `Provider ${name} cannot be used: ${problem}. Calls to it get 503; other providers are not affected.`,
      );
    }
  }
}

function usable({ provider }: Entry): Provider {
  if (provider !== null) return provider;
  throw new GatewayError('no_provider_configured', {
    message:
      "This provider's settings cannot be used, most likely because its secret was sealed with another MASTER_KEY. " +
      "Restore that key or store the secret again; the gateway's log has the reason.",
  });
}

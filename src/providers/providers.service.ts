import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { cliCommand } from '../platform/cli-command.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
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
import { DEFAULT_PROVIDER } from './provider-name.js';
import { ProviderSecrets } from './provider-secrets.service.js';
import { makeProvider, type Provider } from './provider.js';

type Read = () => Promise<DirectoryRow[]>;

/** Knows the providers and which of them a call goes to. All of them are kept in memory: there are few. */
@Injectable()
export class ProvidersService {
  private readonly logger = new Logger('Providers');
  /** The environment's. */
  private readonly own: Provider | null;
  /** null until Postgres was reached for the first time; from then on the last that was read. */
  private directory: Directory | null = null;

  constructor(
    @InjectSettings() env: Settings,
    private readonly dataSource: DataSource,
    private readonly secrets: ProviderSecrets,
    feed: ChangeFeed,
    database: DatabaseService,
  ) {
    this.own = env.providerUrl
      ? makeProvider(DEFAULT_PROVIDER, env.providerUrl, env.providerAuth, env.providerKey ?? null)
      : null;
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

  /** True when it is known that calls to /v1 have nowhere to go. */
  get lacksDefault(): boolean {
    return this.own === null && this.directory !== null && this.directory.fallback?.enabled !== true;
  }

  /** Reads the providers now, so that a change made here is in force here before it is answered. */
  async refresh(): Promise<void> {
    await this.load(() => this.dataSource.query<DirectoryRow[]>(READ_PROVIDERS));
  }

  /**
   * The provider of a call: the one its path names; on `/v1` the one its key is bound to, else the default.
   *
   * @param named provider of `/p/<provider>/…`, or null
   * @param allowed names the key may use, null: all
   * @throws GatewayError provider_not_allowed, provider_not_found (a disabled one too), no_provider_configured (also when a
   *   secret cannot be opened), database_unavailable while no stored provider could ever be read
   */
  resolve(named: string | null, allowed: readonly string[] | null): Provider {
    const name = named ?? (allowed?.length === 1 ? allowed[0]! : null);
    if (name === null) {
      const provider = this.default();
      if (allowed !== null && !allowed.includes(provider.name))
        throw new GatewayError('provider_not_allowed');
      return provider;
    }
    if (allowed !== null && !allowed.includes(name)) throw new GatewayError('provider_not_allowed');
    if (name === DEFAULT_PROVIDER) {
      if (this.own !== null) return this.own;
      throw new GatewayError(named === null ? 'no_provider_configured' : 'provider_not_found');
    }
    const entry = this.stored().byName.get(name);
    if (entry === undefined) throw new GatewayError('provider_not_found');
    if (!entry.enabled)
      throw new GatewayError('provider_not_found', { message: 'This provider is disabled.' });
    return usable(entry);
  }

  /** The environment's default wins over a stored one, so that nobody changes with a row what a deployment has fixed. */
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
    throw new GatewayError('database_unavailable', { message: 'The providers cannot be read right now.' });
  }

  /**
   * Two may read at a time, on different connections: what is older than what is kept is never put in its place. Less
   * than before, although nothing was put there meanwhile, is a database that was restored, and true.
   */
  private async load(read: Read): Promise<void> {
    for (;;) {
      const before = this.directory;
      const found = directoryOf(await read(), (id, sealed) => this.secrets.open(id, sealed));
      if (this.directory !== null && found.counted < this.directory.counted && this.directory !== before)
        continue;
      this.tellFaults(found);
      this.directory = found;
      return;
    }
  }

  /** Once for each, not at every reading. */
  private tellFaults({ byName }: Directory): void {
    for (const { name, fault } of byName.values()) {
      if (fault === null || fault === this.directory?.byName.get(name)?.fault) continue;
      this.logger.error(`The provider ${name} cannot be used: ${fault}. Calls to it get 503, others go on.`);
    }
  }
}

function usable({ provider }: Entry): Provider {
  if (provider !== null) return provider;
  throw new GatewayError('no_provider_configured', {
    message:
      "This provider's settings cannot be used, most likely because its secret was sealed with another MASTER_KEY. " +
      "Restore that key or store the secret anew; the gateway's log says more.",
  });
}

import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { ConfigModule } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseModule } from '../database/database.module.js';
import { KeyNames } from '../keys/key-names.service.js';
import { KeysService } from '../keys/keys.service.js';
import { LeakedKeyService } from '../keys/leaked-key.service.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { ProviderSecrets } from '../providers/provider-secrets.service.js';
import { ProvidersService } from '../providers/providers.service.js';
import { ResealService } from '../providers/reseal.service.js';
import { StoredProvidersService } from '../providers/stored-providers.service.js';
import { ProbeModule } from '../proxy/upstream/probe.module.js';
import { CallFilters } from '../requests/call-filters.js';
import { ReaderPool } from '../requests/reader-pool.js';
import { RequestLogExport } from '../requests/request-log.export.js';
import { RequestLogReader } from '../requests/request-log.reader.js';
import { UsageTotals } from '../usage/usage-totals.js';
import { UsageService } from '../usage/usage.service.js';
import { TeamsService } from '../teams/teams.service.js';

/**
 * Provides the services of the gateway's modules without the modules themselves, because a command needs no controllers,
 * no log writer and no other background work.
 */
@Module({})
export class CliModule {
  /**
   * @param settings with the master key for commands that encrypt or decrypt
   * @param more further services that a command needs
   */
  static forSettings(settings: Settings, more: NonNullable<ModuleMetadata['providers']> = []): DynamicModule {
    return {
      module: CliModule,
      imports: [ConfigModule.forSettings(settings), DatabaseModule, ProbeModule],
      providers: [
        LimitRules,
        TeamsService,
        KeysService,
        KeyNames,
        LeakedKeyService,
        ProviderSecrets,
        ProvidersService,
        StoredProvidersService,
        ResealService,
        ReaderPool,
        RequestLogReader,
        RequestLogExport,
        UsageTotals,
        CallFilters,
        UsageService,
        ...more
      ]
    };
  }
}

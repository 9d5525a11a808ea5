import { type DynamicModule, Module } from '@nestjs/common';
import { ConfigModule } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseModule } from '../database/database.module.js';
import { KeysModule } from '../keys/keys.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { ProbeModule } from '../proxy/probe.module.js';
import { CallFilters } from '../admin/call-filters.js';
import { UsageService } from '../admin/usage.service.js';
import { KeyNames } from '../keys/key-names.service.js';
import { ReaderPool } from '../request-log/reader-pool.js';
import { RequestLogExport } from '../request-log/request-log.export.js';
import { RequestLogReader } from '../request-log/request-log.reader.js';
import { UsageTotals } from '../request-log/usage-totals.js';

/** The gateway's services without its roads, its log writer and its background work. */
@Module({})
export class CliModule {
  /** @param settings with the master key for commands that seal or open */
  static forSettings(settings: Settings): DynamicModule {
    return {
      module: CliModule,
      imports: [ConfigModule.forSettings(settings), DatabaseModule, KeysModule, ProvidersModule, ProbeModule],
      providers: [
        ReaderPool,
        RequestLogReader,
        RequestLogExport,
        UsageTotals,
        KeyNames,
        CallFilters,
        UsageService,
      ],
    };
  }
}

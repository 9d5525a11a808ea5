import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { SETTINGS } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { CLOSE_TIMEOUT_MS, withTimeout } from '../platform/with-timeout.js';
import { dataSourceOptions } from './data-source-options.js';
import { ChangeFeed } from './change-feed.js';
import { DatabaseService } from './database.service.js';
import { LOOKUP_TIMEOUT_MS, LookupPool } from './lookup-pool.js';
import { ReplicaJobs } from './replica-jobs.service.js';

/** Of the admin API and of background work. */
const POOL = { applicationName: 'postern', poolSize: 10, queryTimeoutMs: LOOKUP_TIMEOUT_MS };

/** DataSource whose destroy() has a time limit, so that a hanging query cannot block the shutdown. */
class DataSourceWithTimeout extends DataSource {
  override async destroy(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT_MS, super.destroy());
  }
}

@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [SETTINGS],
      useFactory: (env: Settings) => ({
        ...dataSourceOptions(env.databaseUrl, POOL),
        autoLoadEntities: true,
        // DatabaseService connects: the gateway also starts while Postgres is unavailable.
        manualInitialization: true
      }),
      dataSourceFactory: (options) => Promise.resolve(new DataSourceWithTimeout(options as DataSourceOptions))
    })
  ],
  providers: [DatabaseService, ChangeFeed, LookupPool, ReplicaJobs],
  exports: [DatabaseService, ChangeFeed, LookupPool, ReplicaJobs]
})
export class DatabaseModule {}

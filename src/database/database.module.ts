import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { SETTINGS } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';
import { dataSourceOptions } from './data-source-options.js';
import { ChangeFollower } from './change-follower.js';
import { DatabaseService } from './database.service.js';

/** A look-up that takes longer than this is answered with 503 rather than kept waiting. */
const QUERY_TIMEOUT_MS = 5_000;

/** A look-up that hangs does not keep the process from its end. */
class HastyDataSource extends DataSource {
  override async destroy(): Promise<void> {
    await withTimeout(GOODBYE_MS, super.destroy());
  }
}

@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [SETTINGS],
      useFactory: (env: Settings) => ({
        ...dataSourceOptions(env.databaseUrl, {
          applicationName: 'postern',
          poolSize: env.databasePoolSize,
          queryTimeoutMs: QUERY_TIMEOUT_MS,
        }),
        autoLoadEntities: true,
        // DatabaseService connects: the gateway starts while Postgres is away.
        manualInitialization: true,
      }),
      dataSourceFactory: (options) => Promise.resolve(new HastyDataSource(options as DataSourceOptions)),
    }),
  ],
  providers: [DatabaseService, ChangeFollower],
  exports: [DatabaseService, ChangeFollower],
})
export class DatabaseModule {}

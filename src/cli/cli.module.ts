import { type DynamicModule, Module } from '@nestjs/common';
import { ConfigModule } from '../config/config.module.js';
import type { Env } from '../config/env.js';
import { DatabaseModule } from '../database/database.module.js';
import { KeysModule } from '../keys/keys.module.js';
import { RequestLogReader } from '../request-log/request-log.reader.js';

/** The gateway's services without its roads, its log writer and its background work. */
@Module({})
export class CliModule {
  /** @param env with the address of the database filled in; commands take no other setting */
  static forEnv(env: Env & { databaseUrl: string }): DynamicModule {
    return {
      module: CliModule,
      imports: [ConfigModule.forEnv(env), DatabaseModule, KeysModule],
      providers: [RequestLogReader],
    };
  }
}

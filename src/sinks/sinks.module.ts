import { Module } from '@nestjs/common';
import { KeysModule } from '../keys/keys.module.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { RequestsModule } from '../requests/requests.module.js';
import { ClickHouseArchive } from './archive/clickhouse-archive.service.js';
import { ClickHouseReader } from './archive/clickhouse-reader.service.js';
import { ClickHouseUsage } from './archive/clickhouse-usage.service.js';
import { UsageModule } from '../usage/usage.module.js';
import { SinkHealth } from './sink-health.service.js';
import { SinkRunner } from './sink-runner.service.js';
import { SinkSenders } from './senders/open-sender.js';
import { SinkStates } from './sink-states.service.js';
import { SinksAdminModule } from './sinks-admin.module.js';

/** Sends the rows of the request log to sinks, in the gateway. */
@Module({
  imports: [
    SinksAdminModule,
    KeysModule,
    RegressionsModule,
    RequestsModule,
    ObservabilityModule,
    RequestLogModule,
    UsageModule
  ],
  providers: [
    SinkSenders,
    SinkStates,
    SinkRunner,
    SinkHealth,
    ClickHouseReader,
    ClickHouseArchive,
    ClickHouseUsage
  ]
})
export class SinksModule {}

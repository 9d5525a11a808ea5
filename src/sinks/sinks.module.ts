import { Module } from '@nestjs/common';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { SinkHealth } from './sink-health.service.js';
import { SinkRunner } from './sink-runner.service.js';
import { SinkSenders } from './senders/open-sender.js';
import { SinkStates } from './sink-states.service.js';
import { SinksAdminModule } from './sinks-admin.module.js';

/** Sends the rows of the request log to sinks, in the gateway. */
@Module({
  imports: [SinksAdminModule, ObservabilityModule, RequestLogModule],
  providers: [SinkSenders, SinkStates, SinkRunner, SinkHealth]
})
export class SinksModule {}

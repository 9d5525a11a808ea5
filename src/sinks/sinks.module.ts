import { Module } from '@nestjs/common';
import { SinkRunner } from './sink-runner.service.js';
import { SinkSenders } from './senders/open-sender.js';
import { SinkStates } from './sink-states.service.js';
import { SinksAdminModule } from './sinks-admin.module.js';

/** Sends the rows of the request log to sinks, in the gateway. */
@Module({
  imports: [SinksAdminModule],
  providers: [SinkSenders, SinkStates, SinkRunner]
})
export class SinksModule {}

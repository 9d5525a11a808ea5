import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { ConsumerHealth } from './consumer-health.service.js';
import { ConsumerRunner } from './consumer-runner.service.js';
import { StoredLogConsumer } from './log-consumer.entity.js';
import { LogConsumers } from './log-consumers.js';

/** Gives the rows of the request log to other modules. */
@Module({
  imports: [
    TypeOrmModule.forFeature([StoredLogConsumer]),
    ObservabilityModule,
    RegressionsModule,
    RequestLogModule
  ],
  providers: [LogConsumers, ConsumerRunner, ConsumerHealth],
  exports: [LogConsumers]
})
export class LogConsumersModule {}

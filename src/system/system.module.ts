import { Module } from '@nestjs/common';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { SystemController } from './system.controller.js';
import { SystemService } from './system.service.js';

/** The state of the gateway, for its operators. */
@Module({
  imports: [ObservabilityModule, RequestLogModule],
  controllers: [SystemController],
  providers: [SystemService]
})
export class SystemModule {}

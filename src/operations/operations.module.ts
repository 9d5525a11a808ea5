import { Module } from '@nestjs/common';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { HealthController } from './health.controller.js';
import { ShutdownService } from './shutdown.service.js';

@Module({ imports: [RequestLogModule], controllers: [HealthController], providers: [ShutdownService] })
export class OperationsModule {}

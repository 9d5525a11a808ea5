import { Module } from '@nestjs/common';
import { KeysModule } from '../keys/keys.module.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RoutesModule } from '../routes/routes.module.js';
import { IdleMemoryService } from './idle-memory.service.js';
import { ServingService } from './serving.service.js';

/** Listens and serves; the command line has the admin API without it. */
@Module({
  imports: [KeysModule, ObservabilityModule, RoutesModule],
  providers: [IdleMemoryService, ServingService],
  exports: [ServingService]
})
export class ServingModule {}

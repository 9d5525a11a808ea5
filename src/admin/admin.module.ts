import { Module } from '@nestjs/common';
import { ChangeLog } from '../audit/change-log.js';
import { AuditReader } from '../audit/audit.reader.js';
import { KeyNames } from '../keys/key-names.service.js';
import { KeysModule } from '../keys/keys.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminTokenGuard } from './admin-token.guard.js';
import { AuditController } from './audit.controller.js';
import { CallFilters } from './call-filters.js';
import { KeysController } from './keys.controller.js';
import { ProvidersController } from './providers.controller.js';
import { RequestsController } from './requests.controller.js';
import { TeamsController } from './teams.controller.js';
import { TokenFailures } from './token-failures.js';
import { UnknownRoadController } from './unknown-road.controller.js';
import { UsageController } from './usage.controller.js';
import { UsageService } from './usage.service.js';

@Module({
  imports: [KeysModule, ProvidersModule, RequestLogModule],
  providers: [
    TokenFailures,
    AdminTokenGuard,
    AdminErrorFilter,
    AuditReader,
    ChangeLog,
    KeyNames,
    CallFilters,
    UsageService,
  ],
  // For whatever else asks for the admin token.
  exports: [AdminTokenGuard, AdminErrorFilter, TokenFailures],
  // In the order of their routes: the last one takes what the others left.
  controllers: [
    TeamsController,
    KeysController,
    ProvidersController,
    RequestsController,
    UsageController,
    AuditController,
    UnknownRoadController,
  ],
})
export class AdminModule {}

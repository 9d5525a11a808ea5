import { Module } from '@nestjs/common';
import { GroupsModule } from '../groups/groups.module.js';
import { TrustsAdminModule } from '../identity/trusts/trusts-admin.module.js';
import { KeysModule } from '../keys/keys.module.js';
import { LimitsAdminModule } from '../limits/limits-admin.module.js';
import { PoliciesAdminModule } from '../policies-by-url/policies-admin.module.js';
import { PricesModule } from '../pricing/prices.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { RoutesModule } from '../routes/routes.module.js';
import { SinksAdminModule } from '../sinks/sinks-admin.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { WebhooksAdminModule } from '../webhooks/webhooks-admin.module.js';
import { ApplyController } from './apply.controller.js';
import { ApplyService } from './apply.service.js';
import { Kinds } from './kinds.js';

/** Changes the configuration to match a document. */
@Module({
  imports: [
    GroupsModule,
    LimitsAdminModule,
    TeamsModule,
    ProvidersModule,
    RoutesModule,
    PricesModule,
    KeysModule,
    TrustsAdminModule,
    WebhooksAdminModule,
    PoliciesAdminModule,
    SinksAdminModule
  ],
  controllers: [ApplyController],
  providers: [ApplyService, Kinds]
})
export class ApplyModule {}

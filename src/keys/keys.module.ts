import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../limit-rules/limit-rules.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { FirstKeyService } from './first-key.service.js';
import { GatewayKeySecret } from './gateway-key-secret.entity.js';
import { GatewayKey } from './gateway-key.entity.js';
import { KeyNames } from './key-names.service.js';
import { KeysController } from './keys.controller.js';
import { KeysService } from './keys.service.js';
import { LedKeysService } from './led-keys.service.js';
import { OwnKeysService } from './own-keys.service.js';
import { RecentSignIns } from './recent-sign-ins.service.js';
import { LeakedKeyController } from './leaked-key.controller.js';
import { LeakedKeyService } from './leaked-key.service.js';

/** Creates, lists, changes and revokes gateway keys. */
@Module({
  imports: [TypeOrmModule.forFeature([GatewayKey, GatewayKeySecret]), TeamsModule, LimitRulesModule],
  controllers: [KeysController, LeakedKeyController],
  providers: [
    KeysService,
    OwnKeysService,
    LedKeysService,
    RecentSignIns,
    KeyNames,
    LeakedKeyService,
    FirstKeyService
  ],
  exports: [KeysService, RecentSignIns, KeyNames, LeakedKeyService, FirstKeyService]
})
export class KeysModule {}

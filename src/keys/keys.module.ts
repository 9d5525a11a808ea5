import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FirstKeyService } from './first-key.service.js';
import { GatewayKeySecret } from './gateway-key-secret.entity.js';
import { GatewayKey } from './gateway-key.entity.js';
import { KeysService } from './keys.service.js';
import { LeakedKeyService } from './leaked-key.service.js';
import { Team } from './team.entity.js';
import { TeamsService } from './teams.service.js';

/** Issuing, showing and ending keys. */
@Module({
  imports: [TypeOrmModule.forFeature([Team, GatewayKey, GatewayKeySecret])],
  providers: [TeamsService, KeysService, LeakedKeyService, FirstKeyService],
  exports: [TeamsService, KeysService, LeakedKeyService, FirstKeyService],
})
export class KeysModule {}

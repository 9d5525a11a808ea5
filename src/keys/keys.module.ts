import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { BearerStrategy } from './bearer.strategy.js';
import { FirstKeyService } from './first-key.service.js';
import { GatewayKeySecret } from './gateway-key-secret.entity.js';
import { GatewayKey } from './gateway-key.entity.js';
import { KeyLookupService } from './key-lookup.service.js';
import { KeysService } from './keys.service.js';
import { Team } from './team.entity.js';
import { TeamsService } from './teams.service.js';

@Module({
  imports: [
    PassportModule.register({ property: 'caller', session: false }),
    TypeOrmModule.forFeature([Team, GatewayKey, GatewayKeySecret]),
  ],
  providers: [KeyLookupService, BearerStrategy, TeamsService, KeysService, FirstKeyService],
  exports: [PassportModule, TeamsService, KeysService, FirstKeyService],
})
export class KeysModule {}

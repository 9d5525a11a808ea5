import { Module } from '@nestjs/common';
import { AuthModuleOptions } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { BearerStrategy } from './bearer.strategy.js';
import { FirstKeyService } from './first-key.service.js';
import { GatewayKeySecret } from './gateway-key-secret.entity.js';
import { GatewayKey } from './gateway-key.entity.js';
import { KeyLookupService } from './key-lookup.service.js';
import { KeysService } from './keys.service.js';
import { Team } from './team.entity.js';
import { TeamsService } from './teams.service.js';

/** Which strategy the guard asks passport for: this application's own. */
const authOptions = {
  provide: AuthModuleOptions,
  inject: [BearerStrategy],
  useFactory: ({ name }: BearerStrategy): AuthModuleOptions => ({
    defaultStrategy: name,
    property: 'caller',
    session: false,
  }),
};

@Module({
  imports: [TypeOrmModule.forFeature([Team, GatewayKey, GatewayKeySecret])],
  providers: [KeyLookupService, BearerStrategy, authOptions, TeamsService, KeysService, FirstKeyService],
  exports: [AuthModuleOptions, TeamsService, KeysService, FirstKeyService],
})
export class KeysModule {}

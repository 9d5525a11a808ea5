import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { KeysModule } from '../../keys/keys.module.js';
import { TeamsModule } from '../../teams/teams.module.js';
import { Person } from '../people/person.entity.js';
import { DeviceRequest } from './device-request.entity.js';
import { DeviceIdpSecrets, SignInIdpSecrets } from './idp-secrets.service.js';
import { PersonKeys } from './person-keys.service.js';
import { RefreshToken } from './refresh-token.entity.js';
import { SignIn } from './sign-in.entity.js';

/** People who sign in from a client, their keys and their sign-ins. */
@Module({
  imports: [TypeOrmModule.forFeature([Person, SignIn, RefreshToken, DeviceRequest]), KeysModule, TeamsModule],
  providers: [PersonKeys, SignInIdpSecrets, DeviceIdpSecrets],
  exports: [PersonKeys, SignInIdpSecrets, DeviceIdpSecrets]
})
export class SignInAdminModule {}

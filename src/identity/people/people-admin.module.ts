import { Module } from '@nestjs/common';
import { AdminModule } from '../../admin/admin.module.js';
import { OidcService } from '../../admin/oidc/oidc.service.js';
import { KeysModule } from '../../keys/keys.module.js';
import { ClientSetupService } from './client-setup.service.js';
import { PeopleController } from './people.controller.js';
import { PeopleService } from './people.service.js';
import { SignInsController } from './sign-ins.controller.js';

/** People who sign in by single sign-on, and their end. */
@Module({
  imports: [AdminModule, KeysModule],
  controllers: [PeopleController, SignInsController],
  providers: [PeopleService, ClientSetupService],
  exports: [PeopleService]
})
export class PeopleAdminModule {
  constructor(oidc: OidcService, people: PeopleService) {
    oidc.admission = (identity) => people.admit(identity);
  }
}

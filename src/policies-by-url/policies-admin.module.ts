import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PoliciesController } from './policies.controller.js';
import { PoliciesService } from './policies.service.js';
import { PolicyDirectory } from './policy-directory.service.js';
import { PolicySecrets } from './policy-secrets.service.js';
import { StoredPolicy } from './policy.entity.js';

/** The administration of policies by URL. */
@Module({
  imports: [TypeOrmModule.forFeature([StoredPolicy])],
  controllers: [PoliciesController],
  providers: [PoliciesService, PolicyDirectory, PolicySecrets],
  exports: [PoliciesService, PolicyDirectory]
})
export class PoliciesAdminModule {}

import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { JobSecrets } from './job-secrets.service.js';
import { JobsController } from './jobs.controller.js';
import { JobsService } from './jobs.service.js';
import { ProviderJob } from './provider-job.entity.js';

/** Shows the jobs that providers work on. */
@Module({
  imports: [TypeOrmModule.forFeature([ProviderJob])],
  controllers: [JobsController],
  providers: [JobSecrets, JobsService],
  exports: [JobSecrets]
})
export class JobsAdminModule {}

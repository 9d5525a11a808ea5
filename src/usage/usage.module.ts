import { Module } from '@nestjs/common';
import { KeysModule } from '../keys/keys.module.js';
import { RequestsModule } from '../requests/requests.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { UsageArchive } from './usage-archive.js';
import { UsageController } from './usage.controller.js';
import { UsageService } from './usage.service.js';
import { UsageTotals } from './usage-totals.js';
import { UsedModels } from './used-models.service.js';

/** Adds up calls, tokens and costs. */
@Module({
  imports: [KeysModule, RequestsModule, TeamsModule],
  controllers: [UsageController],
  providers: [UsageArchive, UsageTotals, UsageService, UsedModels],
  exports: [UsageTotals, UsageArchive, UsedModels]
})
export class UsageModule {}

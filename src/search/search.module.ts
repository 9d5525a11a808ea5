import { Module } from '@nestjs/common';
import { KeysModule } from '../keys/keys.module.js';
import { RequestsModule } from '../requests/requests.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { UsageModule } from '../usage/usage.module.js';
import { SearchController } from './search.controller.js';
import { SearchService } from './search.service.js';

/** One search for everything that has a page in the console. */
@Module({
  imports: [TeamsModule, KeysModule, RequestsModule, UsageModule],
  controllers: [SearchController],
  providers: [SearchService]
})
export class SearchModule {}

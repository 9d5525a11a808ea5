import { Module } from '@nestjs/common';
import { TeamsModule } from '../../teams/teams.module.js';
import { TokensController } from './tokens.controller.js';
import { TokensService } from './tokens.service.js';

/** Tokens of the admin API beside ADMIN_TOKEN. */
@Module({ imports: [TeamsModule], controllers: [TokensController], providers: [TokensService] })
export class TokensModule {}

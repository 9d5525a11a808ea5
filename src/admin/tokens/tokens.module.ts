import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { TeamsModule } from '../../teams/teams.module.js';
import { AdminToken } from '../access/admin-token.entity.js';
import { TokensController } from './tokens.controller.js';
import { TokensService } from './tokens.service.js';

/** Tokens of the admin API beside ADMIN_TOKEN. */
@Module({
  imports: [TypeOrmModule.forFeature([AdminToken]), TeamsModule],
  controllers: [TokensController],
  providers: [TokensService]
})
export class TokensModule {}

import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { KeysModule } from '../keys/keys.module.js';
import { LimitRulesModule } from '../limit-rules/limit-rules.module.js';
import { RequestsModule } from '../requests/requests.module.js';
import { RefusalWriterProgress } from './refusal-writer.entity.js';
import { Refusal } from './refusal.entity.js';
import { RefusalsController } from './refusals.controller.js';
import { RefusalsService } from './refusals.service.js';

/** Shows the requests that the gateway rejected. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Refusal, RefusalWriterProgress]),
    KeysModule,
    LimitRulesModule,
    RequestsModule
  ],
  controllers: [RefusalsController],
  providers: [RefusalsService],
  exports: [RefusalsService]
})
export class RefusalsModule {}

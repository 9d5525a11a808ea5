import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SinkSecrets } from './sink-secrets.service.js';
import { Sink } from './sink.entity.js';
import { SinksController } from './sinks.controller.js';
import { SinksService } from './sinks.service.js';

/** The administration of the systems that get the rows of the request log. */
@Module({
  imports: [TypeOrmModule.forFeature([Sink])],
  controllers: [SinksController],
  providers: [SinkSecrets, SinksService],
  exports: [TypeOrmModule, SinksService, SinkSecrets]
})
export class SinksAdminModule {}

import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditLog } from './audit-log.entity.js';
import { AuditController } from './audit.controller.js';
import { AuditReader } from './audit.reader.js';
import { ChangeLog } from './change-log.js';

/** The audit log: who changed what. */
@Module({
  imports: [TypeOrmModule.forFeature([AuditLog])],
  controllers: [AuditController],
  providers: [AuditReader, ChangeLog]
})
export class AuditModule {}

import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SessionRecorder } from '../admin/sessions/session-recorder.js';
import { AuditLog } from './audit-log.entity.js';
import { AuditController } from './audit.controller.js';
import { AuditReader } from './audit.reader.js';
import { AuditedSessions } from './audited-sessions.js';
import { ChangeLog } from './change-log.js';

/** The audit log: who changed what. Global for AdminModule, which records who signs in. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([AuditLog])],
  controllers: [AuditController],
  providers: [AuditReader, ChangeLog, { provide: SessionRecorder, useClass: AuditedSessions }],
  exports: [SessionRecorder]
})
export class AuditModule {}

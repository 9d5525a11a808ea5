import { Global, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SessionRecorder } from '../admin/sessions/session-recorder.js';
import { featuresIn } from '../config/features.js';
import { AuditLog } from './audit-log.entity.js';
import { AuditController } from './audit.controller.js';
import { AuditReader } from './audit.reader.js';
import { AuditedSessions } from './audited-sessions.js';
import { ChangeLog } from './change-log.js';
import { ACTIONS, SUBJECT_TYPES } from './record-change.js';

/** The audit log: who changed what. Global for AdminModule, which records who signs in. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([AuditLog])],
  controllers: [AuditController],
  providers: [AuditReader, ChangeLog, { provide: SessionRecorder, useClass: AuditedSessions }],
  exports: [SessionRecorder]
})
export class AuditModule {
  /** @internal */
  constructor(modules: ModulesContainer) {
    for (const { subjects = [], actions = [] } of featuresIn(modules)) {
      for (const type of subjects) SUBJECT_TYPES.add(type);
      for (const action of actions) ACTIONS.add(action);
    }
  }
}

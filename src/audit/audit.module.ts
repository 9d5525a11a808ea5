import { type DynamicModule, Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SessionRecorder } from '../admin/sessions/session-recorder.js';
import { AuditLog } from './audit-log.entity.js';
import { AuditController } from './audit.controller.js';
import { AuditReader } from './audit.reader.js';
import { AuditedSessions } from './audited-sessions.js';
import { ChangeLog } from './change-log.js';
import { ACTIONS, SUBJECT_TYPES } from './record-change.js';

@Module({})
class ModuleKinds {}

/**
 * The audit log: who changed what. Global for AdminModule, which records who signs in.
 *
 * @beta
 */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([AuditLog])],
  controllers: [AuditController],
  providers: [AuditReader, ChangeLog, { provide: SessionRecorder, useClass: AuditedSessions }],
  exports: [SessionRecorder]
})
export class AuditModule {
  /**
   * Adds types of objects and actions of a module's own, which recordChange() then accepts and the API lists.
   *
   *     @Module({ imports: [AuditModule.forFeature({ types: ['quota'], actions: ['granted'] })] })
   */
  static forFeature(kinds: { types?: readonly string[]; actions?: readonly string[] }): DynamicModule {
    const add = () => {
      for (const type of kinds.types ?? []) SUBJECT_TYPES.add(type);
      for (const action of kinds.actions ?? []) ACTIONS.add(action);
    };
    return {
      module: ModuleKinds,
      providers: [{ provide: Symbol('audited kinds'), useFactory: add }]
    };
  }
}

import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { type RecordedSession, SessionRecorder } from '../admin/sessions/session-recorder.js';
import type { Actor } from '../platform/actor.js';
import { recordChange } from './record-change.js';

/** Records sign-ins and sign-outs in the audit log. */
@Injectable()
export class AuditedSessions extends SessionRecorder {
  record(manager: EntityManager, by: Actor, action: string, session: RecordedSession): Promise<void> {
    const begins = action === 'signed_in';
    return recordChange(manager, by, {
      action,
      type: 'session',
      before: begins ? null : session,
      after: begins ? session : null,
    });
  }
}

import type { EntityManager } from 'typeorm';
import type { Actor } from '../../platform/actor.js';
import type { Role } from '../access/role.js';

/** What is recorded of a session. */
export interface RecordedSession {
  readonly id: string;
  /** Its actor. */
  readonly name: string;
  readonly role: Role;
  readonly expires_at: Date;
}

/** Records who signs in and out. The audit log is above this module and provides it. */
export abstract class SessionRecorder {
  /** @param manager of the transaction that makes the change */
  abstract record(
    manager: EntityManager,
    by: Actor,
    action: 'signed_in' | 'signed_out' | 'ended',
    session: RecordedSession,
  ): Promise<void>;
}

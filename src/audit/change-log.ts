import { Injectable, Logger } from '@nestjs/common';
import {
  DataSource,
  type EntityManager,
  type EntitySubscriberInterface,
  type TransactionCommitEvent,
} from 'typeorm';
import { DatabaseService } from '../database/database.service.js';
import { STARTING } from '../platform/actor.js';

/** Key under which a connection holds the changes of its transaction. */
const CHANGES = 'postern changes';

/** One change as it is recorded. */
export interface RecordedChange {
  actor: string;
  client_ip: string | null;
  action: string;
  subject_type: string;
  subject_id: string | null;
  subject_name: string;
  /** Values of what differs. Not logged. */
  before: object | null;
  after: object | null;
}

/** Logs the change once the transaction is committed, by names and IDs only. */
export function logWhenCommitted({ queryRunner }: EntityManager, change: RecordedChange): void {
  const data = queryRunner!.data as Record<string, RecordedChange[] | undefined>;
  (data[CHANGES] ??= []).push(change);
}

/** The changes that were recorded in this transaction so far. */
export function recordedChanges({ queryRunner }: EntityManager): readonly RecordedChange[] {
  return (queryRunner!.data as Record<string, RecordedChange[] | undefined>)[CHANGES] ?? [];
}

/** Forgets the changes after the first ones, which were rolled back to a savepoint. */
export function forgetChanges(manager: EntityManager, first: number): void {
  (manager.queryRunner!.data as Record<string, RecordedChange[] | undefined>)[CHANGES]?.splice(first);
}

/** Logs each change of a team, key or provider that this process made, after its commit. */
@Injectable()
export class ChangeLog implements EntitySubscriberInterface {
  private readonly logger = new Logger('Audit');

  constructor(dataSource: DataSource, database: DatabaseService) {
    // Not in commands, which run no hooks and print what they changed.
    database.whenReady(() => {
      if (!dataSource.subscribers.includes(this)) dataSource.subscribers.push(this);
      return Promise.resolve();
    });
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    for (const { before: _, after: __, ...change } of this.take(queryRunner.data)) {
      // The first start reports the team and key that it creates by itself.
      if (change.actor === STARTING.name) continue;
      const { actor, client_ip, action, subject_type, subject_id, subject_name } = change;
      const from = client_ip === null ? '' : ` from ${client_ip}`;
      const subject = `${subject_type} ${subject_name}${subject_id === null ? '' : ` (${subject_id})`}`;
      this.logger.log(`${actor}${from} ${action} ${subject}`, change);
    }
  }

  afterTransactionRollback({ queryRunner }: TransactionCommitEvent): void {
    this.take(queryRunner.data);
  }

  private take(data: Record<string, RecordedChange[] | undefined>): RecordedChange[] {
    const changes = data[CHANGES] ?? [];
    delete data[CHANGES];
    return changes;
  }
}

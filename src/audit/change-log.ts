import { Injectable, Logger } from '@nestjs/common';
import {
  DataSource,
  type EntityManager,
  type EntitySubscriberInterface,
  type TransactionCommitEvent,
} from 'typeorm';
import { DatabaseService } from '../database/database.service.js';
import { STARTING } from '../platform/actor.js';

/** What a transaction has changed so far, kept with its connection until it ends. */
const CHANGES = 'postern changes';

/** One change, in names and ids alone. */
export interface ToldChange {
  actor: string;
  client_ip: string | null;
  action: string;
  subject_type: string;
  subject_id: string | null;
  subject_name: string;
}

/** To be told once this transaction is committed. */
export function tellWhenCommitted({ queryRunner }: EntityManager, change: ToldChange): void {
  const data = queryRunner!.data as Record<string, ToldChange[] | undefined>;
  (data[CHANGES] ??= []).push(change);
}

/** Tells the log of changes of teams, keys and providers that were made by way of this process, once they are in force. */
@Injectable()
export class ChangeLog implements EntitySubscriberInterface {
  private readonly logger = new Logger('Audit');

  constructor(dataSource: DataSource, database: DatabaseService) {
    // Connecting puts a new list of subscribers in the place of the old one.
    database.whenReady(() => {
      if (!dataSource.subscribers.includes(this)) dataSource.subscribers.push(this);
      return Promise.resolve();
    });
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    for (const change of this.take(queryRunner.data)) {
      // What the first start makes, it says itself.
      if (change.actor === STARTING.name) continue;
      const { actor, client_ip, action, subject_type, subject_id, subject_name } = change;
      const from = client_ip === null ? '' : ` from ${client_ip}`;
      const subject = `${subject_type} ${subject_name}${subject_id === null ? '' : ` (${subject_id})`}`;
      this.logger.log(`${actor}${from} ${action} the ${subject}`, change);
    }
  }

  afterTransactionRollback({ queryRunner }: TransactionCommitEvent): void {
    this.take(queryRunner.data);
  }

  private take(data: Record<string, ToldChange[] | undefined>): ToldChange[] {
    const changes = data[CHANGES] ?? [];
    delete data[CHANGES];
    return changes;
  }
}

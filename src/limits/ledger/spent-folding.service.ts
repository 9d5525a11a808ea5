import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { DatabaseService } from '../../database/database.service.js';
import { ReplicaJobs } from '../../database/replica-jobs.service.js';
import { describeError } from '../../errors/describe-error.js';
import { RuleCache } from './rule-cache.js';

/** An alert of a limit that all replicas share comes at most this late. */
const EVERY_MS = 10_000;

/** Adds what was charged to limits that all replicas share to their meters. One replica does. */
@Injectable()
export class SpentFolding {
  private readonly logger = new Logger('Limits');

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly rules: RuleCache,
    private readonly jobs: ReplicaJobs,
  ) {}

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.database.notReady !== null || !this.rules.hasHot) return;
    try {
      await this.jobs.onlyOneReplica('limit-fold', () => this.dataSource.query('SELECT limit_fold()'));
    } catch (error) {
      this.logger.warn(
        `Charges could not be added to the limits that all replicas share, trying again: ${describeError(error)}`,
      );
    }
  }
}

import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { ReplicaJobs } from '../database/replica-jobs.service.js';
import { describeError } from '../errors/describe-error.js';

const EVERY_MS = 5 * 60_000;
/** Of fewer calls a share says nothing. */
const MIN_CALLS = 20;

/** A provider of which the cost of more than 5 % of the calls of this UTC day is unknown, once a day. */
const HIGH = `
  SELECT webhook_emit('cost.unknown', data, once) FROM (
    SELECT format('cost.unknown %s %s', md5(provider), date_trunc('day', now(), 'UTC')) AS once,
           jsonb_build_object('provider', provider, 'day', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD'),
             'calls', sum(calls), 'unknown_calls', sum(unknown_calls),
             'low_usd', COALESCE(sum(unknown_low_usd), 0)::text, 'high_usd', sum(unknown_high_usd)::text,
             'unbounded_calls', sum(unbounded_calls)) AS data
    FROM usage_slot WHERE slot >= date_trunc('day', now(), 'UTC')
    GROUP BY provider
    HAVING sum(unknown_calls) * 20 > sum(calls) AND sum(calls) >= ${MIN_CALLS}) high`;

/** Announces providers whose calls often have a cost that is not known. One replica does. */
@Injectable()
export class UnknownCostAlert {
  private readonly logger = new Logger('Usage');

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly jobs: ReplicaJobs,
    @InjectSettings() private readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    try {
      await this.jobs.onlyOneReplica('unknown-cost-alert', () => this.run());
    } catch (error) {
      this.logger.warn(`Unknown costs could not be announced, trying again: ${describeError(error)}`);
    }
  }

  /** One pass. An event that was announced today is not stored again. */
  async run(): Promise<void> {
    await this.dataSource.query(HIGH);
  }
}

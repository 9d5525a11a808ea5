import { Injectable, Logger } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { ReplicaJobs } from '../../../src/index.js';
import { InvoiceLine } from './invoice-line.entity.js';

/** Logs at midnight what all calls have cost. */
@Injectable()
export class DailyTotalJob {
  private readonly logger = new Logger('Invoices');

  constructor(
    private readonly jobs: ReplicaJobs,
    @InjectRepository(InvoiceLine) private readonly lines: Repository<InvoiceLine>,
  ) {}

  @Cron(CronExpression.EVERY_DAY_AT_MIDNIGHT, { timeZone: 'UTC' })
  async onSchedule(): Promise<void> {
    await this.jobs.onlyOneReplica('daily total', () => this.run());
  }

  private async run(): Promise<void> {
    // The sum as text: a number would round it.
    const total = await this.lines
      .createQueryBuilder('line')
      .select('sum(cost_usd)::text', 'usd')
      .getRawOne<{ usd: string | null }>();
    this.logger.log(`All calls have cost ${total?.usd ?? '0'} USD.`);
  }
}

import { Injectable, Logger } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { describeFault } from '../database/database-fault.js';
import { DatabaseService } from '../database/database.service.js';

const DAYS_AHEAD = 7;
const DAY_MS = 86_400_000;
/** The same in every replica: one makes partitions at a time. */
const PARTITION_LOCK = 7_061_002;

/** Keeps a partition of `request_log` ready for today and the next seven UTC days. */
@Injectable()
export class PartitionsService {
  private readonly logger = new Logger('Partitions');

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
  ) {
    database.whenReady(() => this.makeAhead());
  }

  @Cron(CronExpression.EVERY_HOUR, { timeZone: 'UTC' })
  async hourly(): Promise<void> {
    if (this.database.notReady !== null) return;
    try {
      await this.makeAhead();
    } catch (error) {
      this.logger.error(`Partitions could not be made: ${describeFault(error)}. Trying again in an hour.`);
    }
  }

  private async makeAhead(): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [PARTITION_LOCK]);
      const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
      for (let ahead = 0; ahead <= DAYS_AHEAD; ahead++) {
        const from = new Date(today + ahead * DAY_MS).toISOString();
        const to = new Date(today + (ahead + 1) * DAY_MS).toISOString();
        const name = `request_log_${from.slice(0, 10).replaceAll('-', '')}`;
        // DDL takes no parameters; name and bounds are digits of our own clock.
        await manager.query(
          `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF request_log FOR VALUES FROM ('${from}') TO ('${to}')`,
        );
      }
    });
  }
}

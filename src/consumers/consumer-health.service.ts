import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { InjectRepository } from '@nestjs/typeorm';
import type { ClientBase } from 'pg';
import { In, type Repository } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { MetricsService } from '../observability/metrics.service.js';
import { PartitionsService } from '../request-log/partitions.service.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { StoredLogConsumer } from './log-consumer.entity.js';
import { LogConsumers, type RegisteredConsumer } from './log-consumers.js';

const EVERY_MS = 10_000;
/** Of a partition. Counting more would delay retention. */
const MAX_COUNTED = 1_000_000;

const isAfterCursor =
  'l.recorded_at >= c.recorded_until AND (l.recorded_at, l.id) > (c.recorded_until, c.recorded_until_id)';
const countMissed = (partition: string) => `
  UPDATE log_consumer SET missed_rows = missed_rows + rows
  FROM (
    SELECT name AS consumer, (SELECT count(*) FROM (
      SELECT FROM ${partition} l WHERE ${isAfterCursor} LIMIT ${MAX_COUNTED}) AS missed) AS rows
    FROM log_consumer c
  ) AS counted
  WHERE name = consumer AND rows > 0
  RETURNING name, rows::float8`;

/** Reports the state of the consumers in metrics, and counts the rows that retention removes before they had them. */
@Injectable()
export class ConsumerHealth implements OnModuleInit {
  private readonly logger = new Logger('LogConsumers');
  private readonly outage = new OutageLog(this.logger);
  private states: readonly StoredLogConsumer[] = [];

  constructor(
    @InjectRepository(StoredLogConsumer) private readonly stored: Repository<StoredLogConsumer>,
    private readonly consumers: LogConsumers,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
    partitions: PartitionsService,
    private readonly metrics: MetricsService,
  ) {
    partitions.beforeDrop((client, table) => this.countMissed(client, table));
  }

  onModuleInit(): void {
    // A gateway without consumers has no metrics of them.
    if (this.consumers.all.length > 0) this.register(this.metrics);
  }

  @Interval(EVERY_MS)
  async refresh(): Promise<void> {
    const names = this.consumers.all.map(({ name }) => name);
    if (names.length === 0 || this.env.worker !== 1 || this.database.notReady !== null) return;
    try {
      this.states = await this.stored.findBy({ name: In(names) });
      this.outage.ended('The progress of the consumers can be read again.');
    } catch (error) {
      this.outage.report('The progress of the consumers could not be read', describeError(error));
    }
  }

  /** Also for consumers whose module is gone: it may come back. */
  private async countMissed(client: ClientBase, table: string): Promise<() => void> {
    const { rows } = await client.query<{ name: string; rows: number }>(countMissed(table));
    return () => {
      for (const { name, rows: missed } of rows) {
        this.logger.warn(
          `Retention removed ${missed === MAX_COUNTED ? 'at least ' : ''}${missed} rows of ${table} that the consumer "${name}" had not had. ` +
            'If its module is gone for good, delete its row from the table log_consumer.',
        );
      }
    };
  }

  private register({ instruments }: MetricsService): void {
    const counted = (what: (one: RegisteredConsumer) => number) => () =>
      this.consumers.all.map((one) => [{ consumer: one.name }, what(one)] as const);
    const stored = (what: (state: StoredLogConsumer) => number) => () =>
      this.states.map((state) => [{ consumer: state.name }, what(state)] as const);
    instruments.counter(
      'postern_log_consumer_rows_total',
      'Rows of the request log that a consumer of a module has taken in this process.',
      counted(({ rows }) => rows),
      'consumer',
    );
    instruments.counter(
      'postern_log_consumer_failures_total',
      'Transactions of a consumer that failed in this process.',
      counted(({ failures }) => failures),
      'consumer',
    );
    instruments.gaugeBy(
      'max',
      'postern_log_consumer_lag_seconds',
      'Age of the oldest row of the request log that a consumer may not have.',
      stored(({ lagSeconds }) => lagSeconds),
      'consumer',
    );
    instruments.gaugeBy(
      'max',
      'postern_log_consumer_missed_rows',
      'Rows that retention removed before a consumer had them, of all time.',
      stored(({ missedRows }) => Number(missedRows)),
      'consumer',
    );
  }
}

import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { MetricsService } from '../observability/metrics.service.js';

const EVERY_MS = 15_000;
const COUNT = `SELECT count(*)::int AS open FROM provider_job WHERE state = 'open'`;

/** Counts the jobs that have not ended. */
@Injectable()
export class JobMetrics {
  private open = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
    { instruments }: MetricsService,
  ) {
    instruments.gaugeBy(
      'max',
      'postern_jobs_open',
      'Batches, background responses and videos whose usage is not known yet, of all replicas.',
      () => this.open,
    );
  }

  @Interval(EVERY_MS)
  async count(): Promise<void> {
    if (this.env.jobs === 'off' || this.env.worker !== 1 || this.database.notReady !== null) return;
    // The last count stays while Postgres cannot be asked, which readiness reports.
    const rows = await this.dataSource.query<[{ open: number }]>(COUNT).catch(() => null);
    if (rows !== null) this.open = rows[0].open;
  }
}

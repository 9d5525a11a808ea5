import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { DatabaseService } from '../../database/database.service.js';
import { MetricsService } from '../../observability/metrics.service.js';

const EVERY_MS = 15_000;
const COUNT = `SELECT count(*)::int AS live FROM sign_in WHERE ended_at IS NULL AND expires_at > now()`;

/** Counts the sign-ins that have not ended. */
@Injectable()
export class SignInMetrics {
  private live = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
    { instruments }: MetricsService,
  ) {
    instruments.gaugeBy(
      'max',
      'postern_sign_ins',
      'Sign-ins of people from clients that have not ended, of all replicas.',
      () => this.live,
    );
  }

  @Interval(EVERY_MS)
  async count(): Promise<void> {
    if (this.env.signIn === 'off' || this.env.worker !== 1 || this.database.notReady !== null) return;
    // The last count stays while Postgres cannot be asked, which readiness reports.
    const rows = await this.dataSource.query<[{ live: number }]>(COUNT).catch(() => null);
    if (rows !== null) this.live = rows[0].live;
  }
}

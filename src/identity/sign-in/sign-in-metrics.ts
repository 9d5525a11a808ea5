import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { DatabaseService } from '../../database/database.service.js';
import { MetricsService } from '../../observability/metrics.service.js';
import { GOES_ON } from './in-force.js';

const EVERY_MS = 15_000;
const COUNT = `
  SELECT count(*)::int AS live FROM sign_in si JOIN person p ON p.id = si.person_id
  JOIN gateway_key k ON k.id = si.key_id JOIN team t ON t.id = k.team_id
  WHERE ${GOES_ON}`;

/** Counts the sign-ins that go on. */
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
      'Sign-ins of people from clients that go on, of all replicas.',
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

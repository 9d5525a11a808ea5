import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT_MS, withTimeout } from '../platform/with-timeout.js';

const EVERY_MS = 60_000;
/** Rows of one transaction. */
const ROWS = 1_000;
const PAUSE_MS = 200;

/** A day is enough to find out whose a token in a log was. Replicas take different rows. */
const DELETE_ENDED = `
  WITH gone AS (
    DELETE FROM gateway_key_secret WHERE id IN (
      SELECT id FROM gateway_key_secret WHERE kind <> 'key' AND expires_at < now() - interval '1 day'
      LIMIT ${ROWS} FOR UPDATE SKIP LOCKED) RETURNING 1)
  SELECT count(*)::int AS rows FROM gone`;

/** Deletes tokens that ended more than a day ago. */
@Injectable()
export class TokenRetention implements OnApplicationShutdown {
  private readonly logger = new Logger('Keys');
  private running: Promise<void> | null = null;
  private stopped = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  onInterval(): void {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    this.running ??= this.run()
      .catch((error: unknown) => {
        if (!this.stopped) this.logger.warn(`Ended tokens could not be deleted: ${describeError(error)}`);
      })
      .finally(() => (this.running = null));
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    if (this.running !== null) await withTimeout(CLOSE_TIMEOUT_MS, this.running);
  }

  /** One pass. */
  async run(): Promise<void> {
    while (!this.stopped) {
      const [gone] = await this.dataSource.query<{ rows: number }[]>(DELETE_ENDED);
      if (gone!.rows < ROWS) return;
      await sleep(PAUSE_MS);
    }
  }
}

import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';
import { DatabaseService } from '../database/database.service.js';
import { IdempotencyRecords } from './idempotency-records.js';

/** Limits for the stored responses of one gateway key, and for those of all. */
const KEY_BYTES = 256 * 1024 * 1024;
const ALL_BYTES = 4 * 1024 * 1024 * 1024;
const MEASURE_MS = 10_000;
const SWEEP_MS = 60_000;

/**
 * Limits the bytes of stored responses. Measured every ten seconds while responses are stored, and added up in between:
 * what other replicas store is seen with the next measurement. With a counter in Postgres, each call of a key would wait
 * for the previous one.
 */
@Injectable()
export class StoredBytes {
  private readonly logger = new Logger('Idempotency');
  private perKey = new Map<string, number>();
  private all = 0;
  private stale = false;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
  ) {
    database.whenReady(() => this.measure());
  }

  /** Bytes of the stored responses of all replicas, as of the last measurement. */
  get total(): number {
    return this.all;
  }

  /** @returns false if the limit would be exceeded; otherwise the bytes are counted */
  take(keyId: string, bytes: number): boolean {
    this.stale = true;
    const ofKey = (this.perKey.get(keyId) ?? 0) + bytes;
    if (ofKey > KEY_BYTES || this.all + bytes > ALL_BYTES) return false;
    this.perKey.set(keyId, ofKey);
    this.all += bytes;
    return true;
  }

  @Interval(MEASURE_MS)
  async onMeasure(): Promise<void> {
    if (!this.stale || this.database.notReady !== null) return;
    await this.measure().catch((error: unknown) => {
      this.logger.warn(`The size of the stored responses could not be read: ${describeError(error)}`);
    });
  }

  @Interval(SWEEP_MS)
  async onSweep(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    try {
      if ((await this.records.sweep()) > 0) this.stale = true;
    } catch (error) {
      this.logger.warn(`Expired responses could not be deleted yet: ${describeError(error)}`);
    }
  }

  private async measure(): Promise<void> {
    this.stale = false;
    const sizes = await this.records.sizes();
    this.perKey = sizes;
    this.all = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

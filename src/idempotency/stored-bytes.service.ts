import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';
import type { Owner } from './fair-shares.js';
import { DatabaseService } from '../database/database.service.js';
import { IdempotencyRecords } from './idempotency-records.js';

/** Limits for the stored responses of one gateway key, and for those of all. A team stores at most as much as is left. */
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
  private perTeam = new Map<string, number>();
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

  /** Could this many more bytes be stored? */
  hasRoom({ keyId, teamId }: Owner, bytes: number): boolean {
    // Also if nothing is stored: what has expired meanwhile is seen with the next measurement.
    this.stale = true;
    const ofTeam = (this.perTeam.get(teamId) ?? 0) + bytes;
    return (this.perKey.get(keyId) ?? 0) + bytes <= KEY_BYTES && ofTeam <= ALL_BYTES - this.all - bytes;
  }

  /** @returns false if a limit would be exceeded; otherwise the bytes are counted */
  take(owner: Owner, bytes: number): boolean {
    if (!this.hasRoom(owner, bytes)) return false;
    this.count(owner, bytes);
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
    this.perKey = new Map();
    this.perTeam = new Map();
    this.all = 0;
    for (const { bytes, ...owner } of sizes) this.count(owner, bytes);
  }

  private count({ keyId, teamId }: Owner, bytes: number): void {
    this.perKey.set(keyId, (this.perKey.get(keyId) ?? 0) + bytes);
    this.perTeam.set(teamId, (this.perTeam.get(teamId) ?? 0) + bytes);
    this.all += bytes;
  }
}

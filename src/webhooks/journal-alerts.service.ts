import { hostname } from 'node:os';
import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { Journal } from '../request-log/journal/journal.js';

const EVERY_MS = 5_000;

/** Workers of one host, which share a disk, announce it one after the other. */
const LOCK = 'SELECT pg_advisory_xact_lock($1)';
const EMIT = `
  SELECT webhook_emit('journal.degraded', $1::jsonb)
  WHERE NOT EXISTS (
    SELECT FROM webhook_event
    WHERE type = 'journal.degraded' AND data->>'host' = $1::jsonb->>'host' AND created_at > now() - interval '1 hour')`;

interface Degraded {
  host: string;
  reason: string;
  /** False: new calls get 503. */
  accepting: boolean;
}

/** Announces that the journal of this process has become degraded, at most once an hour for each host. */
@Injectable()
export class JournalAlerts {
  private readonly logger = new Logger('Webhooks');
  private isDegraded = false;
  /** Not stored yet: Postgres may be unavailable too. */
  private pending: Degraded | null = null;

  constructor(
    private readonly journal: Journal,
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
  ) {}

  @Interval(EVERY_MS)
  async check(): Promise<void> {
    const { degraded, accepting } = this.journal;
    const isDegraded = degraded !== null || !accepting;
    if (isDegraded && !this.isDegraded) {
      this.pending = { host: hostname(), reason: degraded ?? 'the journal cannot be written', accepting };
    }
    this.isDegraded = isDegraded;
    if (this.pending === null || this.database.notReady !== null) return;
    const data = JSON.stringify(this.pending);
    try {
      await this.dataSource.transaction(async (manager) => {
        await manager.query(LOCK, [ADVISORY_LOCKS.alerts]);
        await manager.query(EMIT, [data]);
      });
      this.pending = null;
    } catch (error) {
      this.logger.warn(`An alert could not be stored, trying again: ${describeError(error)}`);
    }
  }
}

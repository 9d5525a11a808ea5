import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { DatabaseService } from '../../database/database.service.js';
import { describeError } from '../../errors/describe-error.js';
import { CLOSE_TIMEOUT, withTimeout } from '../../platform/patience.js';

const EVERY_MS = 2_000;
/** Failures that are kept of each trust. */
export const KEPT = 50;

const INSERT = `
  INSERT INTO trust_failure (id, trust_id, at, reason, claims)
  SELECT f.id, f.trust_id, f.at, f.reason, f.claims
  FROM jsonb_to_recordset($1) AS f (id uuid, trust_id uuid, at timestamptz, reason text, claims jsonb)
  JOIN trust tr ON tr.id = f.trust_id`;

const DELETE_OLD = `
  DELETE FROM trust_failure WHERE id IN (
    SELECT id FROM (
      SELECT id, row_number() OVER (PARTITION BY trust_id ORDER BY id DESC) AS nr
      FROM trust_failure WHERE trust_id = ANY ($1)) f WHERE nr > ${KEPT})`;

/** Ten refusals in ten minutes, at most once an hour. */
const ALERT = `
  SELECT webhook_emit('trust.failing', data, once) FROM (
    SELECT format('trust.failing %s %s', tr.id, extract(epoch FROM date_trunc('hour', now()))) AS once,
           jsonb_build_object('trust', tr.name, 'trust_id', tr.id, 'failures', count(*)::int, 'minutes', 10,
             'reason', (array_agg(f.reason ORDER BY f.id DESC))[1]) AS data
    FROM trust_failure f JOIN trust tr ON tr.id = f.trust_id
    WHERE f.trust_id = ANY ($1) AND f.at > now() - interval '10 minutes'
    GROUP BY tr.id, tr.name HAVING count(*) >= 10) failing`;

interface Failure {
  id: string;
  trust_id: string;
  at: string;
  reason: string;
  claims: Record<string, unknown>;
}

/**
 * Keeps the last failures of each trust, for tokens that its issuer has signed. Written in batches: anybody who gets a token of
 * a shared issuer can cause failures.
 */
@Injectable()
export class TrustFailures implements OnApplicationShutdown {
  private readonly logger = new Logger('Trusts');
  private pending = new Map<string, Failure[]>();
  private writing = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
  ) {}

  note(trustId: string, reason: string, claims: Record<string, unknown>): void {
    const failures = this.pending.get(trustId) ?? [];
    failures.push({ id: uuidv7(), trust_id: trustId, at: new Date().toISOString(), reason, claims });
    this.pending.set(trustId, failures.slice(-KEPT));
  }

  /** After the batch that is being written: an alert counts the failures that are stored. */
  @Interval(EVERY_MS)
  write(): Promise<void> {
    this.writing = this.writing.then(() => this.writeBatch());
    return this.writing;
  }

  private async writeBatch(): Promise<void> {
    if (this.pending.size === 0 || this.database.notReady !== null) return;
    const batch = this.pending;
    this.pending = new Map();
    try {
      await this.dataSource.transaction(async (manager) => {
        await manager.query(INSERT, [JSON.stringify([...batch.values()].flat())]);
        await manager.query(ALERT, [[...batch.keys()]]);
        await manager.query(DELETE_OLD, [[...batch.keys()]]);
      });
    } catch (error) {
      this.logger.warn(`Failures of trusts could not be stored; retrying: ${describeError(error)}`);
      for (const [id, failures] of batch)
        this.pending.set(id, [...failures, ...(this.pending.get(id) ?? [])].slice(-KEPT));
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT.ms, this.write());
  }
}

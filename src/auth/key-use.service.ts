import { Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { describeError } from '../errors/describe-error.js';
import { DatabaseService } from '../database/database.service.js';
import { patience, withTimeout } from '../platform/patience.js';
import type { Grant } from './caller.js';

const WRITE_MS = 10_000;
/** Upper bound for the last write at a stop, in milliseconds; it only holds the uses of the last seconds. */
const LAST_WRITE = patience('uses of keys at a stop', 1_000);

/**
 * A local clock that is ahead must not hide the uses to come. Locked in one order, so that replicas, rotations and these
 * never wait for each other.
 */
const WRITE = `
  WITH u (id, used_at) AS MATERIALIZED (
    SELECT id, LEAST(at, now()) FROM unnest($1::uuid[], $2::timestamptz[]) AS use (id, at)),
  locked AS MATERIALIZED (
    SELECT id FROM gateway_key_secret WHERE id IN (SELECT id FROM u) ORDER BY id FOR NO KEY UPDATE)
  UPDATE gateway_key_secret s SET last_used_at = u.used_at FROM u JOIN locked USING (id)
  WHERE s.id = u.id AND (s.last_used_at IS NULL OR s.last_used_at < u.used_at)`;

/** The last use of tokens, of keys, which outlives the tokens. Locked as above. */
const WRITE_TOKENS = `
  WITH u (id, used_at) AS MATERIALIZED (
    SELECT s.key_id, LEAST(max(use.at), now())
    FROM unnest($1::uuid[], $2::timestamptz[]) AS use (id, at)
    JOIN gateway_key_secret s ON s.id = use.id AND s.kind <> 'key'
    GROUP BY s.key_id),
  locked AS MATERIALIZED (
    SELECT id FROM gateway_key WHERE id IN (SELECT id FROM u) ORDER BY id FOR NO KEY UPDATE)
  UPDATE gateway_key k SET tokens_used_at = u.used_at FROM u JOIN locked USING (id)
  WHERE k.id = u.id AND (k.tokens_used_at IS NULL OR k.tokens_used_at < u.used_at)`;

/** Records when each secret was last used and writes it in batches, never per call. */
@Injectable()
export class KeyUseService implements BeforeApplicationShutdown {
  private readonly logger = new Logger('Keys');
  private used = new Map<string, number>();
  /** Whether a token is among them. */
  private hasTokens = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
  ) {}

  note({ secretId, kind }: Grant): void {
    this.used.set(secretId, Date.now());
    if (kind !== 'key') this.hasTokens = true;
  }

  @Interval(WRITE_MS)
  async write(): Promise<void> {
    if (this.used.size === 0 || this.database.notReady !== null) return;
    const batch = this.used;
    const { hasTokens } = this;
    this.used = new Map();
    this.hasTokens = false;
    try {
      const times = [...batch.values()].map((time) => new Date(time).toISOString());
      const uses = [[...batch.keys()], times];
      await this.dataSource.query(WRITE, uses);
      if (hasTokens) await this.dataSource.query(WRITE_TOKENS, uses);
    } catch (error) {
      this.logger.warn(`last_used_at could not be written; retrying: ${describeError(error)}`);
      this.hasTokens ||= hasTokens;
      for (const [id, time] of batch) if (!this.used.has(id)) this.used.set(id, time);
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await withTimeout(LAST_WRITE.ms, this.write());
  }
}

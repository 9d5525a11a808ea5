import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request } from 'express';
import { DataSource } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import type { GatewayError } from '../errors/gateway-error.js';
import { MetricsService } from '../observability/metrics.service.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
import type { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';
import { text } from '../request-log/column-domains.js';
import { type Count, merged, recent, RefusalCounts, type Reason } from './refusal-counts.js';
import { UNKNOWN_ID } from './refusal.entity.js';

const EVERY_MS = 5_000;
const MAX_MODEL_LENGTH = 200;
/** Codes that depend on the model of the call. */
const OF_MODELS = new Set<string>([
  'insufficient_quota',
  'rate_limit_exceeded',
  'model_not_allowed',
  'model_not_priced',
  'policy_rejected',
]);

/** Adds up the counts of one batch, unless this process has written a batch with this number or a later one. */
export const ADD = `
  WITH batch AS (
    INSERT INTO refusal_writer AS w (process, seq) VALUES ($1, $2)
    ON CONFLICT (process) DO UPDATE SET seq = EXCLUDED.seq, written_at = now() WHERE w.seq < EXCLUDED.seq
    RETURNING seq)
  INSERT INTO refusal AS r (minute, team_id, key_id, code, rule_nr, provider, model, calls, last_id, last_at)
  SELECT c.* FROM batch, jsonb_to_recordset($3) AS c (minute timestamptz, team_id uuid, key_id uuid, code text,
    rule_nr bigint, provider text, model text, calls bigint, last_id uuid, last_at timestamptz)
  ORDER BY minute, team_id, key_id, code, rule_nr, provider, model
  ON CONFLICT ON CONSTRAINT refusal_pkey DO UPDATE
    SET calls = r.calls + EXCLUDED.calls, last_at = GREATEST(r.last_at, EXCLUDED.last_at),
        last_id = CASE WHEN EXCLUDED.last_at >= r.last_at THEN EXCLUDED.last_id ELSE r.last_id END`;

/**
 * Counts the requests that this process rejects, and adds them to `refusal` every 5 seconds while there are any. A process
 * that is killed loses the counts since then, which are no money.
 */
@Injectable()
export class RefusalWriter implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('Refusals');
  private readonly process = uuidv7();
  private readonly counts = new RefusalCounts();
  /** Not known to be stored. The first one may have been sent, so it keeps its number; what is counted meanwhile waits in the second. */
  private readonly batches: { readonly seq: number; counts: Count[] }[] = [];
  private seq = 0;
  private timer: NodeJS.Timeout | null = null;
  private writing: Promise<void> | null = null;
  private hasFailed = false;
  private dropped = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly metrics: MetricsService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** Nest's testing module makes the providers before there is an adapter. */
  onModuleInit(): void {
    if (this.env.refusals === 'off') return;
    this.host.httpAdapter.rejections.listen((error, req, id) => this.add(error, req, id));
    this.metrics.instruments.counter(
      'postern_refusals_dropped_total',
      'Rejected requests whose counts were dropped, because Postgres was unavailable for 10 minutes.',
      () => this.dropped,
    );
  }

  /** Writes what was counted, also while an earlier write is under way. */
  async onApplicationShutdown(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    await withTimeout(
      CLOSE_TIMEOUT.ms,
      this.flush().then(() => this.flush()),
    );
    const lost = this.batches.reduce((sum, { counts }) => sum + callsOf(counts), 0);
    if (lost > 0)
      this.logger.warn(`The counts of ${lost} rejected requests are lost, because Postgres is unavailable.`);
  }

  private add(error: GatewayError, req: Request | null, id: string): void {
    this.counts.add(reasonOf(error, req), id, Date.now());
    this.wait();
  }

  private wait(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.flush();
    }, EVERY_MS).unref();
  }

  private flush(): Promise<void> {
    return (this.writing ??= this.write().finally(() => {
      this.writing = null;
      if (this.batches.length > 0) this.wait();
    }));
  }

  private async write(): Promise<void> {
    const now = Date.now();
    // Only what has waited: after the clock was set forward, new counts look old.
    this.drop(now);
    this.queue(this.counts.take(now));
    if (this.database.notReady !== null) return;
    try {
      for (let batch = this.batches[0]; batch !== undefined; batch = this.batches[0]) {
        await this.dataSource.query(ADD, [this.process, batch.seq, JSON.stringify(batch.counts)]);
        this.batches.shift();
      }
      if (this.hasFailed) this.logger.log('Counts of rejected requests are stored again.');
      this.hasFailed = false;
    } catch (error) {
      if (!this.hasFailed)
        this.logger.warn(`Counts of rejected requests wait, trying again: ${describeError(error)}`);
      this.hasFailed = true;
    }
  }

  private queue(counts: Count[]): void {
    const [, next] = this.batches;
    if (next !== undefined) next.counts = merged(next.counts, counts);
    else if (counts.length > 0) this.batches.push({ seq: ++this.seq, counts });
  }

  private drop(now: number): void {
    let lost = 0;
    for (const batch of this.batches) {
      const { counts } = batch;
      batch.counts = recent(counts, now);
      lost += callsOf(counts) - callsOf(batch.counts);
    }
    if (lost === 0) return;
    this.dropped += lost;
    this.logger.error(
      `Dropped the counts of ${lost} rejected requests, because Postgres was unavailable for 10 minutes.`,
    );
  }
}

function callsOf(counts: readonly Count[]): number {
  return counts.reduce((sum, { calls }) => sum + calls, 0);
}

/** @param req null for bytes that were no request */
function reasonOf({ code, given }: GatewayError, req: Request | null): Reason {
  // Undefined if the request was rejected before they were known.
  const { caller, call } = (req ?? {}) as Partial<Request>;
  const provider = call?.provider as { name: string } | undefined;
  const model = caller !== undefined && OF_MODELS.has(code) ? (call?.admitted?.model ?? null) : null;
  return {
    team_id: caller?.grant.teamId ?? UNKNOWN_ID,
    key_id: caller?.grant.keyId ?? UNKNOWN_ID,
    code,
    rule_nr: given.limit?.nr ?? '0',
    provider: caller === undefined ? '' : (provider?.name ?? ''),
    model:
      text(model, caller?.key ?? null)
        ?.slice(0, MAX_MODEL_LENGTH)
        .toWellFormed() ?? '',
  };
}

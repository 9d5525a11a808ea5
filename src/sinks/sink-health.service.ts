import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { MetricsService } from '../observability/metrics.service.js';
import { ReadinessService } from '../observability/readiness.service.js';
import { PartitionsService } from '../request-log/partitions.service.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { SinkRunner } from './sink-runner.service.js';
import { SinkStates } from './sink-states.service.js';
import { LAGGING_SECONDS } from './sink-view.js';
import type { Sink } from './sink.entity.js';

const EVERY_MS = 15_000;
/** How the reason begins that readiness reports. */
export const SINKS_BEHIND = 'sinks that are behind';
/** Of REQUEST_LOG_MAX_BYTES. */
const FULL = 0.8;

const LOG_BYTES = `
  SELECT COALESCE(sum(pg_total_relation_size(inhrelid)), 0)::float8 AS bytes
  FROM pg_inherits WHERE inhparent = 'request_log'::regclass`;
/** At most once an hour for each sink, whichever process is the first. */
const EMIT = `SELECT webhook_emit('sink.lagging', $1::jsonb, format('sink.lagging %s %s', $2::text, date_trunc('hour', now())))`;
/** Has an enabled sink not taken all rows of this partition? */
const isMissing = (table: string) => `
  SELECT EXISTS (SELECT FROM sink s WHERE enabled AND EXISTS (
    SELECT FROM ${table} l WHERE l.recorded_at >= s.recorded_until AND (l.recorded_at, l.id) > (s.recorded_until, s.recorded_until_id)
  )) AS missing`;

/** Reports the state of the sinks in metrics, readiness and alerts, and keeps rows that a sink has not taken. */
@Injectable()
export class SinkHealth {
  /** Size of the request log; null: not measured. */
  private logBytes: number | null = null;
  private readonly mostBytes: number | undefined;
  private readonly outage = new OutageLog(new Logger('Sinks'));

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly states: SinkStates,
    private readonly runner: SinkRunner,
    @InjectSettings() private readonly env: Settings,
    partitions: PartitionsService,
    readiness: ReadinessService,
    metrics: MetricsService,
  ) {
    this.mostBytes = env.requestLogMaxBytes;
    partitions.keepWhile(async (client, table) => {
      const { rows } = await client.query<{ missing: boolean }>(isMissing(table));
      return rows[0]!.missing;
    });
    readiness.addCheck(() => this.reasons());
    this.register(metrics);
  }

  @Interval(EVERY_MS)
  async check(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    try {
      await this.states.refresh();
      for (const sink of this.states.all) if (isLagging(sink)) await this.announce(sink);
      if (this.mostBytes !== undefined)
        this.logBytes = (await this.dataSource.query<[{ bytes: number }]>(LOG_BYTES))[0].bytes;
      this.outage.ended('The sinks are checked again.');
    } catch (error) {
      this.outage.report('The sinks could not be checked', describeError(error));
    }
  }

  private async announce({ id, name, kind, lagSeconds, lastError }: Sink): Promise<void> {
    const data = {
      sink: name,
      sink_id: id,
      kind,
      lag_seconds: Math.round(lagSeconds),
      last_error: lastError,
    };
    await this.dataSource.query(EMIT, [JSON.stringify(data), id]);
  }

  private reasons(): string[] {
    const lags = this.states.all.filter(isLagging).map(({ lagSeconds: lag }) => lag);
    // Without names: anybody may read this.
    const reasons =
      lags.length === 0 ? [] : [`${SINKS_BEHIND}: ${lags.length}, by up to ${lagText(Math.max(...lags))}`];
    if (this.mostBytes !== undefined && this.logBytes !== null && this.logBytes >= FULL * this.mostBytes) {
      const percent = Math.round((this.logBytes / this.mostBytes) * 100);
      reasons.push(`the request log has ${percent} % of REQUEST_LOG_MAX_BYTES`);
    }
    return reasons;
  }

  private register({ instruments }: MetricsService): void {
    const counted = (what: 'rows' | 'failures') => () =>
      [...this.runner.counts].map(([sink, counts]) => [{ sink }, counts[what]] as const);
    instruments.counter(
      'postern_sink_rows_total',
      'Rows that a sink has taken from this process.',
      counted('rows'),
      'sink',
    );
    instruments.counter(
      'postern_sink_failures_total',
      'Attempts to send rows to a sink that failed.',
      counted('failures'),
      'sink',
    );
    instruments.gaugeBy(
      'max',
      'postern_sink_lag_seconds',
      'Age of the oldest row that a sink may not have; none while it is paused.',
      () =>
        this.states.all
          .filter(({ enabled }) => enabled)
          .map(({ name, lagSeconds: lag }) => [{ sink: name }, lag] as const),
      'sink',
    );
  }
}

/** Seconds as a person reads them: hours from two hours on. */
function lagText(seconds: number): string {
  return seconds < 7_200 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 3_600)} h`;
}

function isLagging({ enabled, lagSeconds: lag }: Sink): boolean {
  return enabled && lag > LAGGING_SECONDS;
}

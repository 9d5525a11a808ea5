import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource, type EntityManager } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { ReplicaJobs } from '../database/replica-jobs.service.js';
import { describeError } from '../errors/describe-error.js';
import { FailingProvider } from './failing-provider.entity.js';
import { StoredProvider } from '../providers/provider.entity.js';
import { isNew } from '../usage/rollup-sql.js';
import { OutageLog } from '../request-log/writer/outage-log.js';

const EVERY_MS = 30_000;
const WINDOW_SECONDS = 180;
/** A provider fails from this many calls in the window on, of which half fail. */
const LEAST_CALLS = 5;
const FAILING_SHARE = 0.5;
/** It has recovered when at most this share fails: between the two, its state stays. */
const RECOVERED_SHARE = 0.2;
/** A failing provider without calls for so long is forgotten: nobody can say whether it still fails. */
const FORGET = `interval '1 day'`;

/** Outcomes that say how the provider does. Clients that disconnect or stall say nothing about it. */
const JUDGED = `outcome IN ('completed', 'upstream_error', 'upstream_timeout', 'truncated', 'retried')`;
/**
 * A call that the provider failed: not with a 400 or 404, which its client causes. A rejected secret (401), money (402)
 * and quota (429) are the provider's account; where callers send credentials of their own ($1), they are theirs.
 */
const FAILED = `(outcome <> 'completed' OR status >= 500 OR status IN (401, 402, 429) AND provider <> ALL ($1::text[]))`;
const REASON = 'COALESCE(provider_error_code, provider_error_type, error_cause, status::text, outcome)';

/** Rows that are new: not those that a repair has written again. Their calls began at most a day ago. */
const RECENT = `
  SELECT provider, count(*)::int AS calls, count(*) FILTER (WHERE ${FAILED})::int AS failures,
         mode() WITHIN GROUP (ORDER BY ${REASON}) FILTER (WHERE ${FAILED}) AS reason, max(recorded_at) AS last_call_at
  FROM request_log
  WHERE started_at > now() - interval '1 day' AND ${isNew(`now() - make_interval(secs => ${WINDOW_SECONDS})`)}
    AND ${JUDGED}
  GROUP BY provider`;

const RECORDS = `jsonb_to_recordset($1) AS r(provider text, calls int, failures int, reason text, last_call_at timestamptz)`;
const DATA = `jsonb_build_object('provider', provider, 'since', to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'calls', calls, 'failures', failures, 'reason', reason, 'window_seconds', ${WINDOW_SECONDS})`;

/** The figures of those that go on failing, or have not recovered yet. */
const UPDATE = `
  UPDATE failing_provider f
  SET calls = r.calls, failures = r.failures, reason = COALESCE(r.reason, f.reason), last_call_at = r.last_call_at
  FROM ${RECORDS} WHERE r.provider = f.provider`;
/** A row that another process has inserted meanwhile is announced by that one. */
const BEGIN = `
  WITH begun AS (
    INSERT INTO failing_provider (provider, calls, failures, reason, last_call_at)
    SELECT provider, calls, failures, reason, last_call_at FROM ${RECORDS}
    WHERE calls >= ${LEAST_CALLS} AND failures >= calls * ${FAILING_SHARE}
    ON CONFLICT DO NOTHING RETURNING *)
  SELECT webhook_emit('provider.failing', ${DATA}) FROM begun`;
const END = `
  WITH ended AS (
    DELETE FROM failing_provider f USING ${RECORDS}
    WHERE r.provider = f.provider AND r.failures <= r.calls * ${RECOVERED_SHARE} RETURNING f.*)
  SELECT webhook_emit('provider.recovered', ${DATA}) FROM ended`;
const FORGOTTEN = `DELETE FROM failing_provider WHERE last_call_at < now() - ${FORGET}`;

/**
 * Notices providers that fail most of their calls, and those that have recovered, from the rows of all replicas. One
 * process does so; each change and its event are one transaction, so that each is announced once.
 */
@Injectable()
export class ProviderHealthWatch {
  private readonly outage = new OutageLog(new Logger('Providers'));

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly jobs: ReplicaJobs,
    @InjectSettings() private readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    try {
      await this.jobs.onlyOneReplica('provider-health', () => this.run());
      this.outage.ended('Failing providers are looked for again.');
    } catch (error) {
      this.outage.report('Failing providers could not be looked for', describeError(error));
    }
  }

  /** The providers that fail now, the latest first. */
  failing(): Promise<FailingProvider[]> {
    return this.dataSource.manager.find(FailingProvider, { order: { since: 'DESC' } });
  }

  /** One pass. */
  async run(): Promise<void> {
    await this.dataSource.transaction((manager) => look(manager));
  }
}

async function look(manager: EntityManager): Promise<void> {
  const others = await manager.findBy(StoredProvider, { auth: 'client' });
  const recent = JSON.stringify(await manager.query(RECENT, [others.map(({ name }) => name)]));
  await manager.query(UPDATE, [recent]);
  await manager.query(BEGIN, [recent]);
  await manager.query(END, [recent]);
  await manager.query(FORGOTTEN);
}

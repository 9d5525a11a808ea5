import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { ReplicaJobs } from '../database/replica-jobs.service.js';
import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import { describeError } from '../errors/describe-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
import type { Provider } from '../providers/provider.js';
import { ProviderReader } from '../providers/provider-reader.js';
import { ProvidersService } from '../providers/providers.service.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { JobProblem, JobReader } from './job-reader.js';
import { JobSecrets } from './job-secrets.service.js';
import { JobSettlement, type OpenJob } from './job-settlement.service.js';

const EVERY_MS = 5_000;
/** Requests to one provider. */
const AT_ONCE = 4;
/** Between two requests: 10 a second. */
const GAP_MS = 100;
/** Of one provider, in one run. */
const DUE = 100;
/** Providers keep what a job made for days: OpenAI a response for 30, Gemini a batch for 2, others longer. */
const MAX_DAYS = 8;

interface DueJob extends OpenJob {
  sealedId: Buffer | null;
  isOld: boolean;
}

const FIND_PROVIDERS = `
  SELECT DISTINCT provider FROM provider_job WHERE next_check_at <= clock_timestamp() AND provider <> ALL ($1::text[])`;
const FIND_DUE = `
  SELECT id, started_at AS "startedAt", provider, model, sealed_id AS "sealedId",
         started_at < now() - interval '${MAX_DAYS} days' AS "isOld"
  FROM provider_job WHERE provider = $1 AND next_check_at <= clock_timestamp() ORDER BY next_check_at LIMIT ${DUE}`;
/** After 1, 2, 4 … 60 minutes. */
const CHECKED = `
  UPDATE provider_job
  SET problem = $2, tries = tries + 1, checked_at = clock_timestamp(),
      next_check_at = clock_timestamp() + make_interval(mins => LEAST(2 ^ LEAST(tries + 1, 10), 60)::int)
  WHERE id = $1 AND state = 'open'`;
/** The caller's own request is the only one that may see it. */
const WAIT = `
  UPDATE provider_job SET next_check_at = started_at + interval '${MAX_DAYS} days 1 second' WHERE id = $1 AND state = 'open'`;
const DELETE_OLD = `DELETE FROM provider_job WHERE ended_at < now() - make_interval(days => $1)`;

/** Asks providers for the jobs that have not ended: in one process of all at a time. */
@Injectable()
export class JobChecks implements OnApplicationShutdown {
  private readonly outage = new OutageLog(new Logger('Jobs'));
  private readonly stopping = new AbortController();
  private readonly reader: JobReader;
  /** Providers whose jobs are being checked. A slow one keeps no other one waiting. */
  private readonly busy = new Map<string, Promise<void>>();
  private nextTurn = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly jobs: ReplicaJobs,
    private readonly providers: ProvidersService,
    private readonly secrets: JobSecrets,
    private readonly settlement: JobSettlement,
    reader: ProviderReader,
    @InjectSettings() private readonly env: Settings,
  ) {
    this.reader = new JobReader(reader, () => this.turn(), this.stopping.signal);
  }

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.env.jobs === 'off' || this.env.worker !== 1 || this.database.notReady !== null) return;
    try {
      await this.run();
      this.outage.ended('Jobs are checked again.');
    } catch (error) {
      if (!this.stopping.signal.aborted)
        this.outage.report('Jobs could not be checked, trying again', describeError(error));
    }
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.allSettled(this.busy.values()));
  }

  /** Checks the jobs that are due, but for those of busy providers. @returns false if another process does */
  async run(): Promise<boolean> {
    let begun: Promise<void>[] = [];
    const isLeader = await this.jobs.onlyOneReplica('provider-jobs', async () => {
      await this.dataSource.query(DELETE_OLD, [this.env.requestLogRetentionDays]);
      const found = await this.dataSource.query<{ provider: string }[]>(FIND_PROVIDERS, [
        [...this.busy.keys()],
      ]);
      begun = found.map(({ provider }) => this.begin(provider));
    });
    await Promise.all(begun);
    return isLeader;
  }

  private begin(provider: string): Promise<void> {
    const checks = this.checkAll(provider).finally(() => this.busy.delete(provider));
    this.busy.set(provider, checks);
    return checks;
  }

  private async checkAll(provider: string): Promise<void> {
    const due = await this.dataSource.query<DueJob[]>(FIND_DUE, [provider]);
    await Promise.all(Array.from({ length: AT_ONCE }, () => this.work(due)));
  }

  private async work(due: DueJob[]): Promise<void> {
    for (let job = due.shift(); job !== undefined && !this.stopping.signal.aborted; job = due.shift())
      await this.check(job);
  }

  private async check(job: DueJob): Promise<void> {
    const provider = this.providers.find(job.provider);
    if (provider?.forwardsCredentials && !job.isOld) {
      await this.dataSource.query(WAIT, [job.id]);
      return;
    }
    let problem: string | null = null;
    let used: { usage: ResponseUsage | null } | null = null;
    try {
      used = await this.usageOf(job, provider);
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      if (error instanceof JobProblem && error.isFinal) return this.settlement.giveUp(job.id, error.code);
      problem = problemOf(error);
    }
    if (used !== null) await this.settle(job, used.usage);
    else if (job.isOld) await this.settlement.giveUp(job.id, problem ?? 'expired');
    else await this.dataSource.query(CHECKED, [job.id, problem]);
  }

  /** @returns null while the job goes on @throws JobProblem, and errors of the connection */
  private async usageOf(
    job: DueJob,
    provider: Provider | null,
  ): Promise<{ usage: ResponseUsage | null } | null> {
    if (provider === null) throw new JobProblem('provider_unavailable');
    if (provider.forwardsCredentials) throw new JobProblem('expired', true);
    // Only a settlement that found no row removes it.
    if (job.sealedId === null) throw new JobProblem('row_gone', true);
    const seen = await this.reader.job(provider, this.secrets.open(job.id, job.sealedId));
    if (!seen.isEnded) return null;
    const { usage, results } = seen;
    if (usage === null && seen.isFree) return { usage };
    const isUncertain = usage === null || (await this.settlement.isUncertain(job, usage));
    const read = isUncertain && results !== null ? await this.reader.results(provider, results) : null;
    if (read === null && usage === null) throw new JobProblem('no_usage', true);
    return { usage: read ?? usage };
  }

  private async settle(job: DueJob, usage: ResponseUsage | null): Promise<void> {
    try {
      await this.settlement.settle(job, usage);
    } catch (error) {
      this.outage.report(
        'A job that has ended could not be settled, it is checked again',
        describeError(error),
      );
      await this.dataSource.query(CHECKED, [job.id, 'not_settled']);
    }
  }

  /** Waits until the next request may be made. */
  private async turn(): Promise<void> {
    const now = performance.now();
    this.nextTurn = Math.max(this.nextTurn + GAP_MS, now);
    await sleep(this.nextTurn - now, undefined, { signal: this.stopping.signal });
  }
}

function problemOf(error: unknown): string {
  if (error instanceof JobProblem) return error.code;
  if (error instanceof SecretBoxError) return 'unreadable_secret';
  const { name } = (error ?? {}) as { name?: string };
  return name === 'TimeoutError' || name === 'HeadersTimeoutError' || name === 'BodyTimeoutError'
    ? 'timeout'
    : 'unreachable';
}

import { Injectable, Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { DataSource } from 'typeorm';
import type { SeenJob } from '../bodies/usage/token-usage.js';
import { describeError } from '../errors/describe-error.js';
import { ProvidersService } from '../providers/providers.service.js';
import type { LogRow } from '../request-log/columns.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import type { JobKeeper } from '../request-log/writer/job-keeper.js';
import { JobSecrets } from './job-secrets.service.js';
import { JobSettlement, type OpenJob } from './job-settlement.service.js';
import { addJobs, digestOf, type NotedJob } from './stored-jobs.js';

/** SQLSTATE classes of errors of the data or of the tables: trying again would not help, and the log has priority. */
const PERMANENT = /^(2[123]|42(?!P05)|P0)...$/;

const FIND = `
  SELECT id, started_at AS "startedAt", provider, model FROM provider_job
  WHERE provider = $1 AND kind = $2 AND digest = $3 AND state <> 'settled'`;
const CHECK_NOW = `
  UPDATE provider_job SET state = 'open', ended_at = NULL, next_check_at = clock_timestamp()
  WHERE id = $1 AND state <> 'settled'`;

/** Notes the jobs that calls create, and settles those whose end a caller was told. */
@Injectable()
export class ProviderJobKeeper implements JobKeeper {
  private readonly logger = new Logger('Jobs');
  private readonly outage = new OutageLog(this.logger);

  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: JobSecrets,
    private readonly settlement: JobSettlement,
    private readonly providers: ProvidersService,
  ) {}

  seen(row: Readonly<LogRow>, job: SeenJob): string | undefined {
    if (job.isEnded) {
      void this.ended(row.provider, job);
      return undefined;
    }
    if (!job.isNew || row.method !== 'POST') return undefined;
    const noted: NotedJob = {
      kind: job.kind,
      digest: digestOf(job.path).toString('hex'),
      sealed: this.secrets.seal(row.id, job.path).toString('base64'),
    };
    return JSON.stringify(noted);
  }

  async add(client: ClientBase, rows: readonly LogRow[]): Promise<void> {
    try {
      await addJobs(client, rows);
    } catch (error) {
      const { code = '' } = error as { code?: string };
      if (!PERMANENT.test(code)) throw error;
      const ids = rows.flatMap(({ id, job }) => (job === undefined ? [] : id)).join(', ');
      this.logger.fatal(
        `The jobs of calls ${ids} are not followed: ${describeError(error)}. Please report this.`,
      );
    }
  }

  /** A caller has asked for the job, and it has ended. If this fails, the next check finds the same. */
  private async ended(provider: string, job: SeenJob): Promise<void> {
    try {
      const key = [provider, job.kind, digestOf(job.path)];
      const [found] = await this.dataSource.query<OpenJob[]>(FIND, key);
      if (found === undefined) return;
      if (job.isFree || job.usage !== null) await this.settlement.settle(found, job.usage);
      else if (this.providers.find(provider)?.forwardsCredentials)
        await this.settlement.giveUp(found.id, 'no_usage');
      else await this.dataSource.query(CHECK_NOW, [found.id]);
      this.outage.ended('Jobs are settled again.');
    } catch (error) {
      this.outage.report(
        'A job that has ended could not be settled, it is checked again',
        describeError(error),
      );
    }
  }
}

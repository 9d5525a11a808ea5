import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import { correction } from '../limits/ledger/settlement.js';
import { formatDecimal } from '../platform/decimal.js';
import { COST_SCALE } from '../pricing/cost.js';
import { costOfUsage, modelsOf, type UsageCost } from '../pricing/costs/usage-cost.js';
import { PriceResolver } from '../pricing/price-resolver.js';
import { UnpricedModels } from '../pricing/unpriced-models.service.js';
import { correctedRow, valuesOfCorrection } from '../request-log/charges.js';
import type { LogRow } from '../request-log/columns.js';
import { emptyRow } from '../request-log/log-row.js';
import { setCost, setFree, setTokens } from '../request-log/row-cost.js';
import type { ProviderJob } from './provider-job.entity.js';

/** What settling a job needs of it. */
export type OpenJob = Pick<ProviderJob, 'id' | 'startedAt' | 'provider' | 'model'>;

/** The job, the row of its call and the meters of budgets change in one statement, once, whoever finds the usage first. */
const SETTLE = correction(
  correctedRow(`
    UPDATE provider_job
    SET state = 'settled', problem = NULL, sealed_id = NULL, next_check_at = NULL,
        checked_at = clock_timestamp(), ended_at = clock_timestamp()
    WHERE id = $1::uuid AND state <> 'settled'
    RETURNING id`),
);

/** Before SETTLE reads them, budgets that are being made have named themselves in the row of the call. */
const LOCK = 'SELECT FROM provider_job WHERE id = $1 FOR UPDATE';

const GIVE_UP = `
  WITH lost AS (
    UPDATE provider_job
    SET state = 'unknown', problem = $2, next_check_at = NULL, checked_at = clock_timestamp(), ended_at = clock_timestamp()
    WHERE id = $1 AND state <> 'unknown' AND (state = 'open' OR $2 = 'row_gone')
    RETURNING *)
  SELECT webhook_emit('job.lost', jsonb_build_object('request_id', id, 'provider', provider, 'kind', kind, 'model', model,
    'team_id', team_id, 'key_id', key_id, 'problem', problem,
    'started_at', to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')), 'job.lost ' || id) FROM lost`;

/** Enters what a job used into the row of its call, and charges budgets the difference. */
@Injectable()
export class JobSettlement {
  constructor(
    private readonly dataSource: DataSource,
    private readonly resolver: PriceResolver,
    private readonly unpriced: UnpricedModels,
  ) {}

  /** Whether the price depends on how long each request was, which a sum of them does not say. */
  async isUncertain(job: OpenJob, usage: ResponseUsage): Promise<boolean> {
    const { nano, price } = await this.costOf(job, usage);
    return nano === null && price !== null;
  }

  /** What this usage costs at the prices of the call's start. */
  private async costOf(job: OpenJob, usage: ResponseUsage): Promise<UsageCost> {
    const model = job.model ?? usage.model;
    const { provider } = job;
    await this.resolver.load(modelsOf(model, usage).map((name) => ({ provider, model: name })));
    const pricesOf = (name: string) => this.resolver.known(provider, name);
    return costOfUsage(model, usage, pricesOf, job.startedAt.getTime());
  }

  /** @param usage null: the job ended without anything that is billed */
  async settle(job: OpenJob, usage: ResponseUsage | null): Promise<void> {
    const row: LogRow = { ...emptyRow(), id: job.id, started_at: job.startedAt.toISOString() };
    row.provider = job.provider;
    row.model = job.model ?? usage?.model ?? null;
    let usd = '0';
    if (usage === null) setFree(row);
    else usd = await this.setUsage(row, job, usage);
    const tokens = usage === null ? 0 : (usage.promptTokens ?? 0) + (usage.completionTokens ?? 0);
    const [counts] = await this.dataSource.transaction(async (manager) => {
      await manager.query(LOCK, [job.id]);
      return manager.query<[{ guarded: number; corrected: number }]>(
        SETTLE,
        valuesOfCorrection(row, usd, tokens),
      );
    });
    if (counts.guarded > counts.corrected) await this.giveUp(job.id, 'row_gone');
  }

  /** What the job used stays unknown. Its call keeps what it was charged. Announced once. */
  async giveUp(id: string, problem: string): Promise<void> {
    await this.dataSource.query(GIVE_UP, [id, problem]);
  }

  /** @returns what the call is charged: at least, if its cost is not known */
  private async setUsage(row: LogRow, job: OpenJob, usage: ResponseUsage): Promise<string> {
    const { nano, charge, price } = await this.costOf(job, usage);
    setTokens(row, usage);
    const usd = nano === null ? null : formatDecimal(nano, COST_SCALE);
    setCost(row, usd, usd === null ? null : (price?.price.id ?? null));
    // A price that is set later finds the row.
    if (nano === null && price === null && row.model !== null) {
      this.unpriced.add(row);
      await this.unpriced.save();
    }
    return formatDecimal(charge, COST_SCALE);
  }
}

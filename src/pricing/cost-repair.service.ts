import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { PriceResolver } from './price-resolver.js';
import { Repricer } from './repricer.service.js';
import { type UnpricedDay, UnpricedModels } from './unpriced-models.service.js';

const EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
/** Older days are repriced on request only. */
const REPAIRED_DAYS = 7;

const FIND = `
  SELECT provider, model, to_char(day, 'YYYY-MM-DD') AS day, priced_at IS NOT NULL AS "isSecond" FROM unpriced_model
  WHERE priced_at IS NULL OR priced_at < clock_timestamp() - make_interval(secs => $1)
  ORDER BY day DESC, provider, model`;

const FORGET_OLD = `DELETE FROM unpriced_model WHERE day <= (now() AT TIME ZONE 'UTC')::date - ${REPAIRED_DAYS + 1}`;
const REPAIRED = `
  UPDATE unpriced_model SET priced_at = clock_timestamp() WHERE (provider, model, day) = ($1, $2, $3::date)`;
const DONE = 'DELETE FROM unpriced_model WHERE (provider, model, day) = ($1, $2, $3::date)';

/**
 * Fills in the cost of rows that were written before their model had a price. Each day of a model is repaired twice, a
 * minute apart: by then every replica knows the price, so that no further row without a cost can follow.
 */
@Injectable()
export class CostRepair {
  private readonly logger = new Logger('Prices');

  constructor(
    private readonly repricer: Repricer,
    private readonly resolver: PriceResolver,
    private readonly unpriced: UnpricedModels,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.database.notReady !== null) return;
    const work = (async () => {
      await this.unpriced.save();
      if (this.env.worker === 1) await this.run();
    })();
    await work.catch((error: unknown) => {
      this.logger.warn(`Costs could not be filled in, trying again: ${describeError(error)}`);
    });
  }

  /**
   * One pass. @param pauseMs between the two repairs of a day
   *
   * @returns how many rows got a cost; null if another replica repairs
   */
  run(pauseMs = EVERY_MS): Promise<number | null> {
    return this.repricer.exclusively(async (client) => {
      await client.query(FORGET_OLD);
      const { rows } = await client.query<UnpricedDay & { isSecond: boolean }>(FIND, [pauseMs / 1_000]);
      let changed = 0;
      for (const day of rows) changed += await this.repair(client, day);
      if (changed > 0) this.logger.log(`${changed} rows of the request log got the cost that they lacked.`);
      return changed;
    });
  }

  private async repair(client: pg.ClientBase, day: UnpricedDay & { isSecond: boolean }): Promise<number> {
    const { provider, model } = day;
    await this.resolver.load([{ provider, model }]);
    if ((this.resolver.known(provider, model) ?? []).length === 0) return 0;
    const from = new Date(`${day.day}T00:00:00Z`);
    const to = new Date(from.getTime() + DAY_MS);
    const { changed } = await this.repricer.reprice(client, { from, to, provider, model, unpriced: true });
    await client.query(day.isSecond ? DONE : REPAIRED, [provider, model, day.day]);
    return changed;
  }
}

import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { periodStart } from '../platform/zoned-time.js';
import { ProvidersService } from '../providers/providers.service.js';
import { UsageTotals } from '../usage/usage-totals.js';
import { PriceResolver } from './price-resolver.js';
import { MISSING_DAYS, type MissingPrices, type MissingQuery } from './prices.schema.js';

const DAY_MS = 86_400_000;
/** Models by day, which are read at once. */
const MAX_READ = 50_000;

type Missing = MissingPrices['data'][number];

/** Which models were called and have no price, from the sums of usage. */
@Injectable()
export class MissingPricesService {
  constructor(
    private readonly usage: UsageTotals,
    private readonly resolver: PriceResolver,
    private readonly providers: ProvidersService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** @throws ServiceError invalid for a time for which nothing is kept any more, or in which too many models were called */
  async list({ from = this.earliest(), to = new Date() }: MissingQuery): Promise<MissingPrices> {
    const request = { from, to, limit: MAX_READ };
    const { data, next_cursor } = await this.usage.list(['day', 'provider', 'model'], request);
    // Clients make up names of models. A list that leaves some out would look complete.
    if (next_cursor !== null)
      throw ServiceError.of(
        'invalid',
        'from',
        'more than 50,000 models and days were called since: ask for a shorter time',
      );
    const found = new Map<string, Missing>();
    // The newest day first.
    for (const { day, provider, model, unpriced_calls: calls } of data) {
      if (calls === 0 || provider === undefined || model == null) continue;
      const known = found.get(`${provider} ${model}`);
      found.set(`${provider} ${model}`, {
        ...{ provider, catalog: this.providers.catalogOf(provider), model },
        ...{ first_day: day!, last_day: known?.last_day ?? day!, calls: (known?.calls ?? 0) + calls },
      });
    }
    const models = await this.resolver.withoutPrice([...found.values()]);
    models.sort((a, b) => compare(a.provider, b.provider) || compare(a.model, b.model));
    return { data: models, from: from.toISOString(), to: to.toISOString() };
  }

  private earliest(): Date {
    const now = new Date();
    const month = periodStart('month', now, this.env.reportTimezone)!;
    return new Date(Math.min(month.getTime(), now.getTime() - MISSING_DAYS * DAY_MS));
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

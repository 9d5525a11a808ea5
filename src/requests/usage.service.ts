import { Injectable } from '@nestjs/common';
import type { Page } from '../database/page.js';
import { KeyNames } from '../keys/key-names.service.js';
import { UsageTotals } from './usage-totals.js';
import { CallFilters } from './call-filters.js';
import type { UsageFilter, UsageView } from './usage.schema.js';

/** Usage sums of the request log, with the names of teams and keys. */
@Injectable()
export class UsageService {
  constructor(
    private readonly totals: UsageTotals,
    private readonly names: KeyNames,
    private readonly filters: CallFilters,
  ) {}

  /** @throws ServiceError not_found for an unknown team or key, invalid for a foreign cursor */
  async list({ group_by, ...filter }: UsageFilter): Promise<Page<UsageView>> {
    const page = await this.totals.list(group_by, await this.filters.resolve(filter));
    const teams = await this.names.ofTeams(page.data.flatMap(({ team_id }) => team_id ?? []));
    const keys = await this.names.ofKeys(page.data.flatMap(({ key_id }) => key_id ?? []));
    return {
      ...page,
      data: page.data.map((row) => {
        const key = row.key_id === undefined ? undefined : keys.get(row.key_id);
        return {
          ...(row.team_id !== undefined
            ? { team: teams.get(row.team_id) ?? null }
            : row.key_id !== undefined && { team: key?.team ?? null }),
          ...(row.key_id !== undefined && { key: key?.name ?? null, key_prefix: key?.prefix ?? null }),
          ...row,
        };
      }),
    };
  }
}

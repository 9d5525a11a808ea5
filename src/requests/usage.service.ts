import { Injectable } from '@nestjs/common';
import { KeyNames } from '../keys/key-names.service.js';
import { UsageTotals } from './usage-totals.js';
import { CallFilters } from './call-filters.js';
import type { UsageFilter, UsagePage } from './usage.schema.js';

const UNKNOWN_KEY = { key: null, key_prefix: null };

/** Usage sums of the request log, with the names of teams and keys. */
@Injectable()
export class UsageService {
  constructor(
    private readonly totals: UsageTotals,
    private readonly names: KeyNames,
    private readonly filters: CallFilters,
  ) {}

  /** @throws ServiceError not_found for an unknown team or key, invalid for a foreign cursor */
  async list({ group_by, ...filter }: UsageFilter): Promise<UsagePage> {
    const page = await this.totals.list(group_by, await this.filters.resolve(filter));
    const teams = await this.names.ofTeams(page.data.flatMap(({ team_id }) => team_id ?? []));
    const keys = await this.names.ofKeys(page.data.flatMap(({ key_id }) => key_id ?? []));
    return {
      ...page,
      data: page.data.map(({ team_id, key_id, ...row }) => ({
        ...(team_id !== undefined && { team: teams.get(team_id) ?? null, team_id }),
        ...(key_id !== undefined && { ...(keys.get(key_id) ?? UNKNOWN_KEY), key_id }),
        ...row,
      })),
    };
  }
}

import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { recordChange } from '../../../src/audit/record-change.js';
import type { Actor } from '../../../src/platform/actor.js';
import { TeamsService } from '../../../src/teams/teams.service.js';
import type { NewQuota, Quota } from './quotas.schema.js';

/** How much each team may use. In memory: a table of one's own is the next step. */
@Injectable()
export class QuotasService {
  private readonly quotas = new Map<string, Quota>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly teams: TeamsService,
  ) {}

  list(): Quota[] {
    return [...this.quotas.values()];
  }

  /** @throws ServiceError not_found for an unknown team */
  async grant(quota: NewQuota, by: Actor): Promise<Quota> {
    const team = await this.teams.get(quota.team_id);
    await this.dataSource.transaction((manager) =>
      recordChange(manager, by, {
        action: 'granted',
        type: 'quota',
        before: null,
        after: { id: team.id, name: team.name, ...quota },
      }),
    );
    this.quotas.set(team.id, quota);
    return quota;
  }
}

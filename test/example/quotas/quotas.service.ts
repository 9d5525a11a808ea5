import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { DataSource, type Repository } from 'typeorm';
import { type Actor, isUuid, recordChange, Team } from '../../../src/index.js';
import { Quota } from './quota.entity.js';
import type { QuotaView } from './quotas.schema.js';

@Injectable()
export class QuotasService {
  constructor(
    private readonly dataSource: DataSource,
    @InjectRepository(Quota) private readonly quotas: Repository<Quota>,
  ) {}

  async list(): Promise<QuotaView[]> {
    return (await this.quotas.find({ order: { teamId: 'ASC' } })).map(view);
  }

  /** @throws NotFoundException if there is no such team */
  set(teamId: string, tokensPerDay: number, by: Actor): Promise<QuotaView> {
    return this.dataSource.transaction(async (manager) => {
      const lock = { mode: 'pessimistic_write' } as const;
      const team = isUuid(teamId) ? await manager.findOne(Team, { where: { id: teamId }, lock }) : null;
      if (team === null) throw new NotFoundException('No team has this ID.');
      const before = await manager.findOneBy(Quota, { teamId });
      const after = await manager.save(Quota, { teamId, tokensPerDay });
      const shown = (quota: Quota) => ({ id: team.id, name: team.name, ...view(quota) });
      await recordChange(manager, by, {
        action: before === null ? 'created' : 'changed',
        type: 'quota',
        before: before && shown(before),
        after: shown(after),
      });
      return view(after);
    });
  }
}

function view({ teamId, tokensPerDay }: Quota): QuotaView {
  return { team_id: teamId, tokens_per_day: tokensPerDay };
}

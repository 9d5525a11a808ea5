import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { isUuid } from '../../../src/database/page.js';
import { Team } from '../../../src/teams/team.entity.js';
import { Quota } from './quota.entity.js';
import type { QuotaView } from './quotas.schema.js';

@Injectable()
export class QuotasService {
  constructor(
    @InjectRepository(Quota) private readonly quotas: Repository<Quota>,
    @InjectRepository(Team) private readonly teams: Repository<Team>,
  ) {}

  async list(): Promise<QuotaView[]> {
    return (await this.quotas.find({ order: { teamId: 'ASC' } })).map(view);
  }

  /** @throws NotFoundException if there is no such team */
  async set(teamId: string, tokensPerDay: number): Promise<QuotaView> {
    const found = isUuid(teamId) && (await this.teams.existsBy({ id: teamId }));
    if (!found) throw new NotFoundException('No team has this ID.');
    return view(await this.quotas.save({ teamId, tokensPerDay }));
  }
}

function view({ teamId, tokensPerDay }: Quota): QuotaView {
  return { team_id: teamId, tokens_per_day: tokensPerDay };
}

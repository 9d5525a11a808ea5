import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Quota } from './quota.entity.js';
import type { QuotaView } from './quotas.schema.js';

@Injectable()
export class QuotasService {
  constructor(@InjectRepository(Quota) private readonly quotas: Repository<Quota>) {}

  async list(): Promise<QuotaView[]> {
    return (await this.quotas.find({ order: { teamId: 'ASC' } })).map(view);
  }

  /** @throws NotFoundException if there is no such team */
  async set(teamId: string, tokensPerDay: number): Promise<QuotaView> {
    const teams: unknown[] = await this.quotas.query('SELECT 1 FROM team WHERE id = $1', [teamId]);
    if (teams.length === 0) throw new NotFoundException('No team has this ID.');
    return view(await this.quotas.save({ teamId, tokensPerDay }));
  }
}

function view({ teamId, tokensPerDay }: Quota): QuotaView {
  return { team_id: teamId, tokens_per_day: tokensPerDay };
}

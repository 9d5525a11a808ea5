import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { Team } from '../../../src/index.js';

@Entity('quota', { comment: 'How many tokens a team may use a day.' })
export class Quota {
  @ForeignKey(() => Team, { name: 'quota_team_id_fkey' })
  @PrimaryColumn('uuid', { name: 'team_id', primaryKeyConstraintName: 'quota_pkey' })
  teamId!: string;

  @Column('int', { name: 'tokens_per_day' })
  tokensPerDay!: number;
}

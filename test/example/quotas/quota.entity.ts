import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How many tokens a team may use a day. */
@Entity('quota')
export class Quota {
  @PrimaryColumn('uuid', { name: 'team_id', primaryKeyConstraintName: 'quota_pkey' })
  teamId!: string;

  @Column('int', { name: 'tokens_per_day' })
  tokensPerDay!: number;
}

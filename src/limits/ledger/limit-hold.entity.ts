import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'limit_hold_pkey' };

/** What a process holds of a meter. */
@Entity('limit_hold')
export class LimitHold {
  @PrimaryColumn('uuid', { ...KEY, name: 'rule_id' })
  ruleId!: string;

  @PrimaryColumn('text', { ...KEY })
  subject!: string;

  @PrimaryColumn('timestamptz', { ...KEY, name: 'window_start' })
  windowStart!: Date;

  @Index('limit_hold_process_idx')
  @PrimaryColumn('uuid', { ...KEY })
  process!: string;

  @Column('bigint')
  amount!: string;
}

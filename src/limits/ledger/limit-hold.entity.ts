import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'limit_hold_pkey' };

/** What a process holds of a meter. */
@Entity('limit_hold', { comment: 'The part of a budget that a gateway process holds for its calls.' })
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

  /** What calls under way have reserved of it, or calls wait for. The rest is returned, or waits to be charged. */
  @Column('bigint', { default: 0 })
  busy!: string;
}

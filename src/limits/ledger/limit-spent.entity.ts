import { Column, Entity, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'limit_spent_pkey' };

/**
 * What was charged to a limit that all replicas share and is not part of its meter yet. Sessions write into different parts,
 * so that none waits for another.
 */
@Entity('limit_spent', {
  comment: 'Charges of limits that all replicas share, until they are added to limit_meter.',
})
export class LimitSpent {
  @PrimaryColumn('uuid', { ...KEY, name: 'rule_id' })
  ruleId!: string;

  @PrimaryColumn('text', { ...KEY })
  subject!: string;

  @PrimaryColumn('timestamptz', { ...KEY, name: 'window_start' })
  windowStart!: Date;

  @PrimaryColumn('smallint', { ...KEY })
  part!: number;

  @Column('bigint')
  spent!: string;

  /** When the last call began that was charged. */
  @Column('timestamptz', { name: 'admitted_at' })
  admittedAt!: Date;
}

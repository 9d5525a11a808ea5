import { Column, Entity, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'limit_slot_pkey' };

/** How much of a rate was handed out in a slot of 5 seconds. */
@Entity('limit_slot')
export class LimitSlot {
  @PrimaryColumn('uuid', { ...KEY, name: 'rule_id' })
  ruleId!: string;

  @PrimaryColumn('text', { ...KEY })
  subject!: string;

  /** Seconds of Postgres's clock since 1970, divided by 5. */
  @PrimaryColumn('bigint', { ...KEY })
  slot!: string;

  @Column('bigint')
  used!: string;
}

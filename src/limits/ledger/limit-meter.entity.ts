import { Column, Entity, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'limit_meter_pkey' };
const COUNT = { default: 0 };

/** What was used of a rule by one subject in one period. `pg` returns bigint as text. */
@Entity('limit_meter', {
  comment: 'What was spent of each budget in each period. Amounts in billionths of a US dollar, or tokens.',
})
export class LimitMeter {
  @PrimaryColumn('uuid', { ...KEY, name: 'rule_id' })
  ruleId!: string;

  /** The keyed hash of an end user; empty for a rule of a team or key itself. */
  @PrimaryColumn('text', { ...KEY, default: '' })
  subject!: string;

  @PrimaryColumn('timestamptz', { ...KEY, name: 'window_start' })
  windowStart!: Date;

  /** The sum of the charges in the request log. */
  @Column('bigint', { ...COUNT })
  spent!: string;

  /** The sum of the holds. */
  @Column('bigint', { ...COUNT })
  held!: string;

  /** What resets have added to the amount. */
  @Column('bigint', { ...COUNT })
  credited!: string;

  /** Rejected calls. */
  @Column('bigint', { ...COUNT })
  refused!: string;

  /** When a call was last rejected; null: none was. */
  @Column('timestamptz', { name: 'refused_at', nullable: true })
  refusedAt!: Date | null;

  /** What that call would have used. */
  @Column('bigint', { name: 'refused_needed', nullable: true })
  refusedNeeded!: string | null;

  /** When the last call began that was charged; null: none yet, or only by versions that did not note it. */
  @Column('timestamptz', { name: 'admitted_at', nullable: true })
  admittedAt!: Date | null;

  /** The highest percentage for which an alert was sent. */
  @Column('smallint', { ...COUNT })
  alerted!: number;

  /** When the alert that the budget is exhausted was sent; null: not yet. */
  @Column('timestamptz', { name: 'exhausted_at', nullable: true })
  exhaustedAt!: Date | null;
}

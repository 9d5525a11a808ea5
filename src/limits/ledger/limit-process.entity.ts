import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A process run that exchanges limits. Being seen renews all that it holds. */
@Entity('limit_process')
export class LimitProcess {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'limit_process_pkey' })
  id!: string;

  /** Number of its last message. */
  @Column('bigint')
  seq!: string;

  @Column('timestamptz', { name: 'seen_at' })
  seenAt!: Date;
}

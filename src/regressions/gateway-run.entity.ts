import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A process run of the gateway. Rows of runs that have ended stay for a week. */
@Entity('gateway_run', { comment: 'What each process run of the gateway has written last.' })
export class GatewayRun {
  @Index('gateway_run_running_idx', { where: 'server IS NOT NULL' })
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'gateway_run_pkey' })
  run!: string;

  @Column('bigint', {
    comment:
      'Counts its batches of rows and its polls; one that is lower than what the process knows shows that Postgres has lost transactions.',
  })
  seq!: string;

  @Column('timestamptz', { comment: 'When it was counted last.' })
  at!: Date;

  @Column('timestamptz', {
    nullable: true,
    comment:
      'Start of the Postgres server for which the process has put back what that server had lost; null: it has ended, or did not respond.',
  })
  server!: Date | null;
}

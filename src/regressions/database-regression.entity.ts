import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

export const REGRESSION_STATES = ['put_back', 'waiting', 'dismissed', 'another_database'] as const;
export type RegressionState = (typeof REGRESSION_STATES)[number];

/** An entry of the audit log that Postgres had lost, and that no process applies again: an administrator repeats it. */
export interface LostEntry {
  /** Of the entry; a UUIDv7. */
  id: string;
  /** When the change was made, in ISO 8601. */
  at: string;
  actor: string;
  action: string;
  subjectType: string;
  subjectId: string;
  subjectName: string;
}

/** What is there of a process run, and what Postgres had acknowledged: values of gateway_run.seq, as decimal strings. */
export interface LostRun {
  surviving: string;
  acknowledged: string;
}

/** A loss of transactions that Postgres had acknowledged. */
@Entity('database_regression', {
  comment:
    'Losses of transactions that Postgres had acknowledged: a failover to an asynchronous standby, or a restored backup.',
})
@Check('database_regression_state_check', `state IN ('put_back', 'waiting', 'dismissed', 'another_database')`)
@Unique('database_regression_server_key', ['server', 'number'])
export class DatabaseRegression {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'database_regression_pkey' })
  id!: string;

  @Column('timestamptz', { comment: 'Start of the Postgres server on which it was noticed.' })
  server!: Date;

  @Column('int', { default: 1, comment: 'Counts the losses that were noticed on this server.' })
  number!: number;

  @Column('timestamptz', { name: 'noticed_at', default: () => 'clock_timestamp()' })
  noticedAt!: Date;

  @Column('timestamptz', {
    name: 'lost_from',
    nullable: true,
    comment:
      'What was written from then on may be lost; null: unknown, or nothing of the processes is there.',
  })
  lostFrom!: Date | null;

  @Column('int', { name: 'gap_seconds', nullable: true, comment: 'How long the lost time is.' })
  gapSeconds!: number | null;

  @Column('text', {
    comment:
      'put_back: the processes put back what they have; waiting: an administrator decides; dismissed: nothing is put back; another_database: nothing of the processes is there, and nothing is put back.',
  })
  state!: RegressionState;

  @Column('jsonb', {
    default: () => `'{}'`,
    comment:
      'For each process run: what is there of what it has written (surviving), and what Postgres had acknowledged.',
  })
  runs!: Record<string, LostRun>;

  @Column('bigint', { name: 'rows_put_back', default: 0 })
  rowsPutBack!: string;

  @Column('bigint', {
    name: 'rows_skipped',
    default: 0,
    comment: 'Rows of days that retention has removed.',
  })
  rowsSkipped!: string;

  @Column('bigint', {
    name: 'claims_put_back',
    default: 0,
    comment: 'Idempotency-Keys that were put back.',
  })
  claimsPutBack!: string;

  @Column('bigint', {
    name: 'ends_put_back',
    default: 0,
    comment: 'Revocations and other ends of keys, secrets, tokens, sessions and people that were put back.',
  })
  endsPutBack!: string;

  @Column('jsonb', {
    name: 'lost_entries',
    default: () => `'[]'`,
    comment: 'Entries of the audit log that were lost and are not applied again.',
  })
  lostEntries!: LostEntry[];

  @Column('timestamptz', { name: 'updated_at', default: () => 'clock_timestamp()' })
  updatedAt!: Date;
}

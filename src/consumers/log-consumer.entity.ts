import { Column, Entity, PrimaryColumn, VirtualColumn } from 'typeorm';
import { lagSeconds } from '../request-log/log-cursor.js';

/** How far a consumer of the request log is. The row stays when its module is gone. */
@Entity('log_consumer', { comment: 'How far each module is that gets the rows of the request log.' })
export class StoredLogConsumer {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'log_consumer_pkey' })
  name!: string;

  /** The consumer has every row up to this place. */
  @Column('timestamptz', { name: 'recorded_until' })
  recordedUntil!: Date;

  @Column('uuid', { name: 'recorded_until_id' })
  recordedUntilId!: string;

  @Column('bigint', {
    name: 'missed_rows',
    default: 0,
    comment: 'Rows that retention removed before the consumer had them.',
  })
  missedRows!: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt!: Date;

  /** That of the oldest row that the consumer may not have. */
  @VirtualColumn('double precision', { query: lagSeconds })
  lagSeconds!: number;
}

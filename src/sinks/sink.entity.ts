import {
  Check,
  Column,
  Entity,
  PrimaryColumn,
  Unique,
  UpdateDateColumn,
  VersionColumn,
  VirtualColumn,
} from 'typeorm';
import { lagSeconds } from '../request-log/log-cursor.js';

export const SINK_KINDS = ['clickhouse', 'jetstream', 'http'] as const;
export type SinkKind = (typeof SINK_KINDS)[number];

/** A system that gets every row of the request log, and how far it is. */
@Entity('sink', {
  comment: 'Where the rows of the request log are sent, and how far each of these systems is.',
})
@Unique('sink_name_key', ['name'])
@Check('sink_kind_check', `kind IN ('clickhouse', 'jetstream', 'http')`)
@Check(
  'sink_batch_check',
  'num_nulls(batch_until, batch_until_id, batch_token, batch_ends, batch_at) IN (0, 5)',
)
export class Sink {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'sink_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  @Column('text')
  kind!: SinkKind;

  /** Without what may be secret in it. */
  @Column('text', { name: 'shown_url' })
  shownUrl!: string;

  /** Table of ClickHouse or subject of JetStream; null for HTTP. */
  @Column('text', { nullable: true })
  target!: string | null;

  /** The URL and the secret, encrypted with MASTER_KEY and bound to this row. */
  @Column('bytea')
  sealed!: Buffer;

  /** False: paused. */
  @Column('boolean', { default: true })
  enabled!: boolean;

  /** The sink has every row up to this place. */
  @Column('timestamptz', { name: 'recorded_until' })
  recordedUntil!: Date;

  @Column('uuid', { name: 'recorded_until_id' })
  recordedUntilId!: string;

  /** The last row of the batch that is being sent. Stored before the first byte is sent. */
  @Column('timestamptz', { name: 'batch_until', nullable: true })
  batchUntil!: Date | null;

  @Column('uuid', { name: 'batch_until_id', nullable: true })
  batchUntilId!: string | null;

  /** Identifies the batch to the sink: the same each time the batch is sent. */
  @Column('uuid', { name: 'batch_token', nullable: true })
  batchToken!: string | null;

  /** The last row of each message of the batch. */
  @Column('jsonb', { name: 'batch_ends', nullable: true })
  batchEnds!: [recordedAt: string, id: string][] | null;

  @Column('timestamptz', { name: 'batch_at', nullable: true })
  batchAt!: Date | null;

  @Column('bigint', { name: 'rows_sent', default: 0 })
  rowsSent!: string;

  @Column('timestamptz', { name: 'sent_at', nullable: true })
  sentAt!: Date | null;

  @Column('timestamptz', { name: 'failing_since', nullable: true })
  failingSince!: Date | null;

  @Column('text', { name: 'last_error', nullable: true })
  lastError!: string | null;

  @Column('timestamptz', { name: 'last_error_at', nullable: true })
  lastErrorAt!: Date | null;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1 })
  version!: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at', default: () => 'now()' })
  updatedAt!: Date;

  /** That of the oldest row that the sink may not have: its cursor follows the clock while there are no rows. */
  @VirtualColumn('double precision', {
    query: lagSeconds,
  })
  lagSeconds!: number;
}

import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One change. Rows are only inserted, never changed. */
@Entity('audit_log')
@Index('audit_log_subject_id_idx', ['subjectId', 'id'])
export class AuditLog {
  /** UUIDv7, so IDs sort by time. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'audit_log_pkey' })
  id!: string;

  @Column('timestamptz', { default: () => 'now()' })
  at!: Date;

  @Column('text')
  actor!: string;

  /** Client address of the admin request; null for a command. */
  @Column('inet', { name: 'client_ip', nullable: true })
  clientIp!: string | null;

  @Column('text')
  action!: string;

  @Column('text', { name: 'subject_type' })
  subjectType!: string;

  @Column('uuid', { name: 'subject_id' })
  subjectId!: string;

  /** Name of the object at the time of the change. */
  @Column('text', { name: 'subject_name' })
  subjectName!: string;

  /** Previous values of what changed; null for a new object. */
  @Column('jsonb', { nullable: true })
  before!: object | null;

  /** New values of what changed; null for a removed object. */
  @Column('jsonb', { nullable: true })
  after!: object | null;
}

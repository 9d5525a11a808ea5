import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One change. Rows are only inserted, never changed. */
@Entity('audit_log', {
  comment: 'Who changed which team, key or provider. Rows are only inserted.',
})
@Index('audit_log_subject_id_idx', ['subjectId', 'id'])
export class AuditLog {
  /** UUIDv7, so IDs sort by time. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'audit_log_pkey' })
  id!: string;

  @Index('audit_log_at_idx')
  @Column('timestamptz', { default: () => 'clock_timestamp()' })
  at!: Date;

  @Column('text', { comment: 'admin-token, cli:<user of the operating system>, or start.' })
  actor!: string;

  @Column('inet', {
    name: 'client_ip',
    nullable: true,
    comment: 'Client address of the admin request; null for a command.',
  })
  clientIp!: string | null;

  @Column('text')
  action!: string;

  @Column('text', { name: 'subject_type' })
  subjectType!: string;

  @Column('uuid', { name: 'subject_id' })
  subjectId!: string;

  @Column('text', { name: 'subject_name', comment: 'Name of the object at the time of the change.' })
  subjectName!: string;

  @Column('jsonb', { nullable: true, comment: 'Previous values of what changed; null for a new object.' })
  before!: object | null;

  @Column('jsonb', { nullable: true, comment: 'New values of what changed; null for a removed object.' })
  after!: object | null;
}

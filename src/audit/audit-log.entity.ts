import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One change that somebody made. Rows are only ever added. */
@Entity('audit_log')
@Index('audit_log_subject_id_idx', ['subjectId', 'id'])
export class AuditLog {
  /** UUIDv7: its order is that of the changes. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'audit_log_pkey' })
  id!: string;

  @Column('timestamptz', { default: () => 'now()' })
  at!: Date;

  @Column('text')
  actor!: string;

  /** The admin's own address; null for a command, which is run on a machine, not called from one. */
  @Column('inet', { name: 'client_ip', nullable: true })
  clientIp!: string | null;

  @Column('text')
  action!: string;

  @Column('text', { name: 'subject_type' })
  subjectType!: string;

  @Column('uuid', { name: 'subject_id' })
  subjectId!: string;

  /** As it was called then. */
  @Column('text', { name: 'subject_name' })
  subjectName!: string;

  /** What was so before and changed; null when it was not there. */
  @Column('jsonb', { nullable: true })
  before!: object | null;

  /** What became of it; null when it is no more. */
  @Column('jsonb', { nullable: true })
  after!: object | null;
}

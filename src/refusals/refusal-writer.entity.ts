import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The last counts of a process that were stored. */
@Entity('refusal_writer', {
  comment: 'The last counts that each process has written, so that none is added twice.',
})
export class RefusalWriterProgress {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'refusal_writer_pkey' })
  process!: string;

  @Column('bigint')
  seq!: string;

  @Column('timestamptz', { name: 'written_at', default: () => 'now()' })
  writtenAt!: Date;
}

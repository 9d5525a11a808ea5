import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A process run that exchanges limits that all replicas share. */
@Entity('limit_hot_process', {
  comment: 'The last message of each gateway process about limits that all replicas share.',
})
export class LimitHotProcess {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'limit_hot_process_pkey' })
  id!: string;

  @Column('bigint')
  seq!: string;
}

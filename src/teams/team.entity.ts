import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Who gateway keys belong to. */
@Entity('team')
export class Team {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'team_pkey' })
  id!: string;

  @Column('text', { unique: true })
  name!: string;

  /** All keys of a disabled team are refused. */
  @Column('boolean', { default: false })
  disabled!: boolean;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  /** Goes up with every change that people make, so that nobody overwrites what they have not seen. */
  @Column('int', { default: 1 })
  version!: number;
}
